// One global placement pass: what is pending in all scans, what the fleet can take, and the transaction that
// makes tasks Published together with the intent to publish them.
import type { Definition, Step } from '#sonar/contracts/definition.ts';
import type { Dispatch } from '#sonar/contracts/dispatch-message.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { AttemptId, ClaimToken, ExecutorId } from '#sonar/contracts/ids.ts';
import { dispatchKey } from '#sonar/contracts/names.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { type Allocation, capacityOf, fill, type PlaceableStep } from '#sonar/domain/placement.ts';
import { renderCommand, renderTarget } from '#sonar/domain/render.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import { checkTarget, parseScope } from '#sonar/domain/scope.ts';
import { dispatchedInputs, scanInputsOf } from '#sonar/domain/step-inputs.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { findRevision } from '#sonar/stores/definitions.ts';
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
  refuseTasks,
  releasePass,
  requestPass,
  takePendingTasks,
} from '#sonar/stores/placement.ts';
import { missingSecrets } from '#sonar/stores/secrets.ts';
import { markMissingSecrets, markStarved } from '#sonar/stores/steps.ts';
import { readScanInputs } from './read-scan-inputs.ts';

export interface PlaceParts {
  database: Database;
  executorId: ExecutorId;
  /** Master key that new attempts' credentials are derived from. */
  keyId: string;
  settings: Pick<Settings, 'SONAR_ALIVE_WITHIN_MS' | 'SONAR_CAPACITY_MULTIPLE' | 'SONAR_PLACEMENT_LEASE_MS'>;
  log: Logger;
}

export interface PassResult {
  placed: { scanId: string; step: string; tag: string; tasks: number }[];
  refused: number;
}

// No pass places more: bounds the time that the claim's row stays locked.
const maxPlacedPerPass = 1_000;

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
    return await parts.database.transaction(async (tx) => {
      const locked = await lockPass(tx, claim);
      if (!locked) return undefined;
      const result = await pass(tx, parts);
      await markServed(tx, locked.requested);
      return result;
    });
  } finally {
    await releasePass(parts.database, token);
  }
}

interface Plan {
  row: PendingStepRow;
  step: Step;
  files: Definition['files'];
}

async function pass(tx: Db, parts: PlaceParts): Promise<PassResult> {
  const { settings } = parts;
  const workers = await eligibleWorkers(tx, settings.SONAR_ALIVE_WITHIN_MS);
  const flying = await inFlight(tx);
  const byTag = new Map<string, number>();
  for (const row of flying) byTag.set(row.tag, (byTag.get(row.tag) ?? 0) + row.attempts);
  const total = flying.reduce((sum, row) => sum + row.attempts, 0);
  const capacity = capacityOf(workers, { byTag, total }, settings.SONAR_CAPACITY_MULTIPLE);
  capacity.fleet = Math.min(capacity.fleet, maxPlacedPerPass);

  const rows = await pendingSteps(tx, maxPlacedPerPass);
  const plans = new Map<string, Plan>();
  const placeable: PlaceableStep[] = [];
  const definitions = new Map<string, Definition>();
  for (const row of rows) {
    const { steps, files } = await definitionOf(tx, row, definitions);
    const step = steps.find((candidate) => candidate.name === row.step);
    if (!step) continue;
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
    plans.set(JSON.stringify([row.scan_id, row.step]), { row, step, files });
    const own = flying
      .filter((flight) => flight.scan_id === row.scan_id && flight.step === row.step)
      .reduce((sum, flight) => sum + flight.attempts, 0);
    placeable.push({
      scanId: row.scan_id,
      step: row.step,
      tags: step.tags,
      pending: row.pending,
      concurrencyLeft:
        step.maxConcurrent === null ? Number.POSITIVE_INFINITY : Math.max(0, step.maxConcurrent - own),
    });
  }
  const { allocations, starved } = fill(placeable, capacity);
  const changed = await markStarved(tx, starved, [...new Set(rows.map((row) => row.scan_id))]);
  for (const change of changed)
    parts.log.warn({
      operation: change.starved ? 'step_starved' : 'step_served',
      scanId: change.scan_id,
      step: change.step,
    });
  const result: PassResult = { placed: [], refused: 0 };
  for (const allocation of allocations) {
    const plan = plans.get(JSON.stringify([allocation.scanId, allocation.step]));
    if (plan) await dispatch(tx, parts, plan, allocation, result);
  }
  return result;
}

/** Asked in each pass: a secret may be set at any time, and what waits for it has not failed. */
async function secretsMissing(tx: Db, row: PendingStepRow, step: Step): Promise<string[]> {
  const names = [...new Set(Object.values(step.secrets))];
  return names.length === 0 ? [] : missingSecrets(tx, row.workspace_id, names);
}

async function definitionOf(
  tx: Db,
  row: PendingStepRow,
  known: Map<string, Definition>,
): Promise<Definition> {
  const key = JSON.stringify([row.workspace_id, row.definition_name, row.definition_revision]);
  const cached = known.get(key);
  if (cached) return cached;
  const revision = await findRevision(tx, row.workspace_id, row.definition_name, row.definition_revision);
  if (!revision)
    throw new SonarError(
      'internal',
      `definition ${row.definition_name} lost revision ${row.definition_revision}`,
    );
  known.set(key, revision.compiled);
  return revision.compiled;
}

async function dispatch(tx: Db, parts: PlaceParts, plan: Plan, allocation: Allocation, result: PassResult) {
  const { row, step } = plan;
  const tasks = await takePendingTasks(tx, row.scan_id, step.name, allocation.tasks);
  if (tasks.length === 0) return;
  // A list of a million lines is not read for a command that does not name it.
  const names = scanInputsOf(step);
  const inputs = names.length === 0 ? {} : await readScanInputs(tx, row.scan_id, names);
  const dispatches: NewDispatch[] = [];
  const refusals: { taskId: PendingTaskRow['task_id']; reason: string }[] = [];
  for (const task of tasks) {
    const rendered = render(plan, task, allocation.tag, inputs);
    if (rendered.ok) dispatches.push(rendered.dispatch);
    else refusals.push({ taskId: task.task_id, reason: rendered.reason });
  }
  if (refusals.length > 0) result.refused += await refuseTasks(tx, failureCodes.itemRefused, refusals);
  if (dispatches.length === 0) return;
  const tasksPlaced = await dispatchTasks(
    tx,
    {
      scanId: row.scan_id,
      workspaceId: row.workspace_id,
      step: step.name,
      definitionRevision: row.definition_revision,
      keyId: parts.keyId,
    },
    dispatches,
  );
  result.placed.push({ scanId: row.scan_id, step: step.name, tag: allocation.tag, tasks: tasksPlaced });
}

type Rendering = { ok: true; dispatch: NewDispatch } | { ok: false; reason: string };

function render(
  { row, step, files }: Plan,
  task: PendingTaskRow,
  tag: string,
  inputs: RenderContext['inputs'],
): Rendering {
  const context: RenderContext = { item: task.item ?? undefined, inputs };
  const outOfScope = targetFault(row, step, context);
  if (outOfScope !== undefined) return { ok: false, reason: outOfScope };
  const rendered = renderCommand(step, context);
  if (!rendered.ok) return { ok: false, reason: rendered.reason };
  const attemptId = newId<AttemptId>();
  const payload: Dispatch = {
    v: 1,
    attemptId,
    taskId: task.task_id,
    scanId: row.scan_id,
    step: step.name,
    tag,
    dispatchKey: dispatchKey(row.scan_id, task.task_id, step.name),
    command: rendered.command,
    stdin: rendered.stdin,
    env: rendered.env,
    inputs: dispatchedInputs(step, files),
    outputs: step.outputs.map((output) => ({
      name: output.name,
      path: output.path,
      optional: output.optional,
    })),
    okExit: step.okExit,
    timeoutMs: step.timeoutMs,
  };
  return {
    ok: true,
    dispatch: { taskId: task.task_id, attemptId, eventId: newId(), tag, number: task.attempts + 1, payload },
  };
}

/** Checked again at placement: the last gate before a command touches a host. */
function targetFault(row: PendingStepRow, step: Step, context: RenderContext): string | undefined {
  // The items of a batch were checked one by one before it was made.
  if (step.target === null || step.foreach?.batch != null) return undefined;
  const rendered = renderTarget(step, context);
  if (!rendered.ok) return rendered.reason;
  const scope = parseScope(row.scope);
  if (!scope.ok) return 'the scan has a scope that does not parse';
  const refused = rendered.targets.find((target) => checkTarget(scope.scope, target).kind === 'refused');
  return refused === undefined
    ? undefined
    : `target ${JSON.stringify(refused).slice(0, 200)} is not within the scope`;
}
