// One global placement pass: what is pending in all scans, what the fleet can take, and the transaction that
// makes tasks Published together with the intent to publish them.
import type { Definition, Step } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ClaimToken, ExecutorId } from '#sonar/contracts/ids.ts';
import type { Database, Db, Transaction } from '#sonar/db/pool.ts';
import { effectiveStep } from '#sonar/definition/live-definition.ts';
import {
  type Allocation,
  capacityOf,
  fill,
  type PlaceableStep,
  type Turn,
  withoutLacking,
} from '#sonar/domain/placement.ts';
import { scanInputsOf } from '#sonar/domain/step-inputs.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { isSonarError, messageOf, SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import {
  claimPass,
  dispatchTasks,
  eligibleWorkers,
  inFlight,
  lockPass,
  markServed,
  type NewDispatch,
  type PendingStepRow,
  type PendingTaskRow,
  passIsWanted,
  pendingSteps,
  recordTurns,
  refuseTasks,
  releasePass,
  requestPass,
  takePendingTasks,
} from '#sonar/stores/placement.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import { missingSecrets } from '#sonar/stores/secrets.ts';
import { markMissingSecrets, markStarved } from '#sonar/stores/steps.ts';
import { failNowhere, type Nowhere, readPassedOver } from './pass-over-workers.ts';
import { readScanInputs } from './read-scan-inputs.ts';
import { readScanScope } from './read-scan-scope.ts';
import { type DispatchSource, renderDispatch } from './render-dispatch.ts';

export interface PlaceParts {
  database: Database;
  revisions: Revisions;
  executorId: ExecutorId;
  /** Master key that new attempts' credentials are derived from. */
  keyId: string;
  settings: Pick<Settings, 'SONAR_ALIVE_WITHIN_MS' | 'SONAR_CAPACITY_MULTIPLE' | 'SONAR_PLACEMENT_LEASE_MS'>;
  log: Logger;
  /** Told after the commit of a pass that placed something: there is something to publish. */
  onPlaced?: () => void;
}

export interface PassResult {
  placed: { scanId: string; step: string; tag: string; tasks: number }[];
  refused: number;
  /** Work is pending that the fleet serves: it waits for slots to come free, not for a worker. */
  served: boolean;
}

// No pass places more: bounds the time that the claim's row stays locked.
const maxPlacedPerPass = 1_000;
const maxBytesPerStatement = 4 * 1024 * 1024;
const maxBytesPerAllocation = 32 * 1024 * 1024;

/** A scan asks for a pass; whoever holds the claim serves all requests at once. */
export const requestPlacement = (database: Database): Promise<void> => requestPass(database);

/** Whether a pass would find anything: one cheap question of an idle process. */
export const placementIsWanted = (database: Database): Promise<boolean> => passIsWanted(database);

/** Claims the pass, makes one and gives the claim back. Undefined: somebody else is at it. */
export async function placeTasks(parts: PlaceParts): Promise<PassResult | undefined> {
  const token = newId<ClaimToken>();
  const claim = { token, executorId: parts.executorId, leaseMs: parts.settings.SONAR_PLACEMENT_LEASE_MS };
  if (!(await claimPass(parts.database, claim))) return undefined;
  try {
    const result = await parts.database.transaction(async (tx) => {
      const locked = await lockPass(tx, claim);
      if (!locked) return undefined;
      const result = await pass(tx, parts, locked.turns);
      await markServed(tx, locked.requested);
      return result;
    });
    if (result !== undefined && result.placed.length > 0) parts.onPlaced?.();
    return result;
  } finally {
    await releasePass(parts.database, token);
  }
}

interface Plan {
  row: PendingStepRow;
  step: Step;
  files: Definition['files'];
}

async function pass(tx: Transaction, parts: PlaceParts, turnsBefore: number): Promise<PassResult> {
  const { settings } = parts;
  const workers = await eligibleWorkers(tx, settings.SONAR_ALIVE_WITHIN_MS);
  const flying = await inFlight(tx);
  const byTag = new Map<string, number>();
  for (const row of flying) byTag.set(row.tag, (byTag.get(row.tag) ?? 0) + row.attempts);
  const total = flying.reduce((sum, row) => sum + row.attempts, 0);
  const capacity = capacityOf(workers, { byTag, total }, settings.SONAR_CAPACITY_MULTIPLE);
  capacity.fleet = Math.min(capacity.fleet, maxPlacedPerPass);

  const rows = await pendingSteps(tx, maxPlacedPerPass);
  const overs = await readPassedOver(tx, rows);
  const nowhere: Nowhere[] = [];
  const plans = new Map<string, Plan>();
  const placeable: PlaceableStep[] = [];
  for (const row of rows) {
    const plan = await planOf(tx, parts, row);
    if (plan === undefined) continue;
    const { step } = plan;
    const missing = await secretsMissing(tx, row, step);
    if (missing.join() !== row.missing_secrets.join()) {
      await markMissingSecrets(tx, row.scan_id, row.step, missing);
      parts.log.warn({
        operation: missing.length > 0 ? 'secret_missing' : 'secret_set',
        scanId: row.scan_id,
        step: row.step,
        secrets: missing,
      });
    }
    if (missing.length > 0) continue;
    plans.set(JSON.stringify([row.scan_id, row.step]), plan);
    const own = flying
      .filter((flight) => flight.scan_id === row.scan_id && flight.step === row.step)
      .reduce((sum, flight) => sum + flight.attempts, 0);
    const whole: PlaceableStep = {
      scanId: row.scan_id,
      step: row.step,
      tags: step.tags,
      pending: row.pending,
      lastTurn: row.last_turn ?? turnsBefore,
      turnTaken: row.turn_taken,
      concurrencyLeft:
        step.maxConcurrent === null ? Number.POSITIVE_INFINITY : Math.max(0, step.maxConcurrent - own),
    };
    const { incarnations, reason } = overs(row);
    const left = withoutLacking(whole, own, workers, incarnations, settings.SONAR_CAPACITY_MULTIPLE);
    if (left === 'nobody') nowhere.push({ row, reason });
    else placeable.push(left);
  }
  const { allocations, turns, lastTurn, starved } = fill(placeable, capacity, turnsBefore);
  await keepTurns(tx, rows, turns, lastTurn);
  const changed = await markStarved(tx, starved, [...new Set(rows.map((row) => row.scan_id))]);
  for (const change of changed)
    parts.log.warn({
      operation: change.starved ? 'step_starved' : 'step_served',
      scanId: change.scan_id,
      step: change.step,
    });
  const result: PassResult = { placed: [], refused: 0, served: starved.length < placeable.length };
  for (const step of nowhere) result.refused += await failNowhere(tx, parts.log, step, maxPlacedPerPass);
  for (const allocation of allocations) {
    const plan = plans.get(JSON.stringify([allocation.scanId, allocation.step]));
    if (!plan) continue;
    // One scan's fault must not stop the others' work.
    try {
      await tx.savepoint(() => dispatch(tx, parts, plan, allocation, result));
    } catch (error) {
      if (isSonarError(error, 'unreachable')) throw error;
      parts.log.error({
        operation: 'placement_failed',
        scanId: allocation.scanId,
        step: allocation.step,
        error: messageOf(error),
      });
    }
  }
  return result;
}

/** Of the steps that were given something, and of those that now stand in the row for the first time. */
async function keepTurns(
  tx: Db,
  rows: readonly PendingStepRow[],
  served: readonly Turn[],
  lastTurn: number,
): Promise<void> {
  const turns = rows.flatMap((row) => {
    const own = served.find((turn) => turn.scanId === row.scan_id && turn.step === row.step);
    if (own === undefined && row.last_turn !== null) return [];
    const place = own ?? { scanId: row.scan_id, step: row.step, lastTurn, turnTaken: 0 };
    return [{ ...place, workspaceId: row.workspace_id }];
  });
  if (turns.length > 0) await recordTurns(tx, turns, lastTurn);
}

/** Asked in each pass: a secret may be set at any time, and what waits for it has not failed. */
async function secretsMissing(tx: Db, row: PendingStepRow, step: Step): Promise<string[]> {
  const names = [...new Set(Object.values(step.secrets))];
  return names.length === 0 ? [] : missingSecrets(tx, row.workspace_id, names);
}

/** The step as its scan has taken it; undefined, and logged, where that cannot be told: the others go on. */
async function planOf(tx: Db, parts: PlaceParts, row: PendingStepRow): Promise<Plan | undefined> {
  try {
    const { compiled } = await parts.revisions.find(
      tx,
      row.workspace_id,
      row.definition_name,
      row.definition_revision,
    );
    const step = compiled.steps.find((candidate) => candidate.name === row.step);
    if (step !== undefined) return { row, step: effectiveStep(step, row.pins), files: compiled.files };
    throw new SonarError('internal', `revision ${row.definition_revision} has no step "${row.step}"`);
  } catch (error) {
    if (!isSonarError(error, 'internal')) throw error;
    parts.log.error({
      operation: 'placement_failed',
      scanId: row.scan_id,
      step: row.step,
      error: messageOf(error),
    });
    return undefined;
  }
}

async function dispatch(tx: Db, parts: PlaceParts, plan: Plan, allocation: Allocation, result: PassResult) {
  const { row, step } = plan;
  const tasks = await takePendingTasks(tx, row.scan_id, step.name, allocation.tasks);
  if (tasks.length === 0) return;
  const source: DispatchSource = {
    ...row,
    files: plan.files,
    inputs: await readScanInputs(tx, row.scan_id, scanInputsOf(step)),
    scope: step.target === null ? null : await readScanScope(tx, row.scan_id),
  };
  const dispatches: NewDispatch[] = [];
  const refusals: { taskId: PendingTaskRow['task_id']; reason: string }[] = [];
  let bytes = 0;
  for (const task of tasks) {
    // What is left over stays Pending for the next pass.
    if (bytes > maxBytesPerAllocation) break;
    const rendered = renderDispatch(source, step, task, allocation.tag);
    if (rendered.ok) {
      bytes += rendered.dispatch.bytes;
      dispatches.push(rendered.dispatch);
    } else refusals.push({ taskId: task.task_id, reason: rendered.reason });
  }
  const refused = refusals.length > 0 ? await refuseTasks(tx, failureCodes.itemRefused, refusals) : 0;
  const owner = {
    scanId: row.scan_id,
    workspaceId: row.workspace_id,
    step: step.name,
    definitionRevision: row.definition_revision,
    keyId: parts.keyId,
  };
  let tasksPlaced = 0;
  for (const slice of slicesOf(dispatches)) tasksPlaced += await dispatchTasks(tx, owner, slice);
  // At the end: what a fault has undone is not counted.
  result.refused += refused;
  if (dispatches.length > 0)
    result.placed.push({ scanId: row.scan_id, step: step.name, tag: allocation.tag, tasks: tasksPlaced });
}

/** PostgreSQL takes no parameter past 256 MiB, and one statement's memory should stay small. */
function slicesOf(dispatches: readonly NewDispatch[]): NewDispatch[][] {
  const slices: NewDispatch[][] = [];
  let bytes = maxBytesPerStatement;
  for (const dispatched of dispatches) {
    if (bytes + dispatched.bytes > maxBytesPerStatement) {
      slices.push([]);
      bytes = 0;
    }
    slices.at(-1)?.push(dispatched);
    bytes += dispatched.bytes;
  }
  return slices;
}
