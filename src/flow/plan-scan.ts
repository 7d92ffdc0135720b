// One planning pass of a scan: begins steps whose needs are met, makes the children of finished tasks,
// settles what is over. Everything is derived from rows; a repeated or overlapping pass makes nothing twice.
import type { Step } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { type LiveDefinition, pinsOf } from '#sonar/definition/live-definition.ts';
import { childStepsOf, type PlanAction, planSteps, type StepFacts, singleNeed } from '#sonar/domain/plan.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { intakeGapMs } from '#sonar/domain/staleness.ts';
import { madeInputs } from '#sonar/domain/step-inputs.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { insertExpansion, insertExpansionsOfParents } from '#sonar/stores/expansions.ts';
import { inputsAreDue } from '#sonar/stores/input-files.ts';
import { dropRetry } from '#sonar/stores/retries.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import { failScanRow, lockScan, recordTick, type ScanRow } from '#sonar/stores/scans.ts';
import {
  beginStep,
  closeStep,
  moveBackfill,
  pinStep,
  type StepRow,
  stepsOfScan,
} from '#sonar/stores/steps.ts';
import { countTasks, foldTaskCounts, taskCounts } from '#sonar/stores/task-counts.ts';
import {
  cancelTasks,
  clearPlanDue,
  finishedTasks,
  insertChildren,
  insertTask,
  lockOpenTasks,
  pinSources,
  planDueTasks,
  stepOpenness,
} from '#sonar/stores/tasks.ts';
import { endAbandonedAttempts } from '#sonar/stores/workers.ts';
import { workOffReopening } from './reopen-steps.ts';
import { cancelRemoved, readLiveDefinition, takeRevision } from './take-revision.ts';

export interface PlanPass {
  scan: ScanRow;
  /** Undefined where nothing is planned: the scan is not Running, or is being reopened. */
  definition: LiveDefinition | undefined;
  steps: Map<string, StepRow>;
  facts: Map<string, StepFacts>;
  made: number;
  /** Tasks wait for input files that are to be made. */
  inputsDue: boolean;
  /** Something was done that may let more be done: ask again. */
  progressed: boolean;
}

// Larger batches hold the scan's lock longer; smaller ones cost more round trips.
const parentsPerPass = 1_000;
const cancelledPerPass = 5_000;
/** Sorts before every id. */
const beforeAllTasks = '00000000-0000-0000-0000-000000000000';

export interface PlanParts {
  database: Database;
  revisions: Revisions;
  settings: Pick<
    Settings,
    | 'SONAR_CANCEL_GRACE_MS'
    | 'SONAR_ALIVE_WITHIN_MS'
    | 'SONAR_PULSE_EVERY_MS'
    | 'SONAR_STALE_AFTER_MS'
    | 'SONAR_SCAN_TASK_CAP'
  >;
  log: Logger;
}

/**
 * `isTick` is false for the further passes of one tick.
 * @throws SonarError `not_found` where there is no such scan.
 */
export function planScan(parts: PlanParts, scanId: ScanId, isTick = true): Promise<PlanPass> {
  return parts.database.transaction(async (tx) => {
    const scan = await lockScan(tx, scanId);
    if (!scan) throw new SonarError('not_found', `there is no scan ${scanId}`);
    if (isTick) await recordTick(tx, scanId);
    if (isScanOpen(scan.status)) {
      if (scan.status === 'Cancelling') await dropRetry(tx, scanId);
      if (await workOffReopening(tx, scanId)) return reopeningPass(tx, scan);
    }
    if (scan.status === 'Cancelling') return cancelPass(tx, scan, parts.settings);
    if (scan.status !== 'Running')
      return emptyPass(
        scan,
        isScanOpen(scan.status) ? await readSteps(tx, scanId) : new Map<string, StepRow>(),
      );
    return runningPass(tx, parts, await takeRevision(tx, parts, scan));
  });
}

const emptyPass = (scan: ScanRow, steps: Map<string, StepRow>): PlanPass => ({
  scan,
  definition: undefined,
  steps,
  facts: new Map(),
  made: 0,
  inputsDue: false,
  progressed: false,
});

/** Nothing else is done before a retry or a repair is carried out. */
async function reopeningPass(tx: Db, scan: ScanRow): Promise<PlanPass> {
  await foldTaskCounts(tx, scan.scan_id);
  return { ...emptyPass(scan, await readSteps(tx, scan.scan_id)), progressed: true };
}

async function cancelPass(tx: Db, scan: ScanRow, settings: PlanParts['settings']): Promise<PlanPass> {
  const open = await lockOpenTasks(tx, scan.scan_id, null, cancelledPerPass);
  await cancelTasks(tx, open, {
    code: scan.failing ? failureCodes.scanFailed : failureCodes.scanCancelled,
    message: scan.failing ? 'the scan failed before the task ended' : 'the scan was cancelled',
  });
  await endAbandonedAttempts(tx, scan.scan_id, {
    graceMs: settings.SONAR_CANCEL_GRACE_MS,
    absentMs: settings.SONAR_ALIVE_WITHIN_MS,
    gapMs: intakeGapMs(settings.SONAR_ALIVE_WITHIN_MS, settings.SONAR_PULSE_EVERY_MS),
    intakeMs: settings.SONAR_STALE_AFTER_MS,
  });
  await foldTaskCounts(tx, scan.scan_id);
  return {
    ...emptyPass(scan, await readSteps(tx, scan.scan_id)),
    progressed: open.length === cancelledPerPass,
  };
}

async function runningPass(tx: Db, parts: PlanParts, scan: ScanRow): Promise<PlanPass> {
  const taskCap = parts.settings.SONAR_SCAN_TASK_CAP;
  const held = await readSteps(tx, scan.scan_id);
  const definition = await readLiveDefinition(tx, parts.revisions, scan, [...held.values()]);
  const moreRemoved = await cancelRemoved(tx, scan, held.values());
  const children = await makeChildren(tx, scan, definition);
  const late = await backfill(tx, scan, definition);
  const before = await readSteps(tx, scan.scan_id);
  const facts = await readFacts(tx, scan.scan_id, before);
  const actions = planSteps(definition, facts);
  let made = children.made + late.made;
  for (const action of actions) made += await act(tx, scan, definition, action);
  await foldTaskCounts(tx, scan.scan_id);
  if (made > 0 && (await countTasks(tx, scan.scan_id)) > taskCap)
    await failScanRow(tx, scan.scan_id, `${failureCodes.taskCap}: the scan has grown past ${taskCap} tasks`);
  return {
    scan,
    definition,
    steps: actions.length > 0 ? await readSteps(tx, scan.scan_id) : before,
    facts,
    made,
    inputsDue: await inputsAreDue(tx, scan.scan_id),
    progressed: actions.length > 0 || children.more || late.more || moreRemoved,
  };
}

async function act(tx: Db, scan: ScanRow, definition: LiveDefinition, action: PlanAction): Promise<number> {
  const { step } = action;
  const owner = { scanId: scan.scan_id, workspaceId: scan.workspace_id };
  if (action.kind === 'settle') {
    await closeStep(tx, scan.scan_id, step.name, 'settled', null);
    return 0;
  }
  if (action.kind === 'block') {
    await closeStep(tx, scan.scan_id, step.name, 'blocked', action.note);
    return 0;
  }
  const sourcesId = action.pinned.length > 0 ? newId<string>() : null;
  if (sourcesId !== null) await pinSources(tx, owner, sourcesId, action.pinned);
  const isChild = action.work.kind === 'children';
  // Children are pinned with the first of them.
  const pins = isChild ? null : pinsOf(step, definition);
  if (pins !== null) definition.pins.set(step.name, pins);
  await beginStep(tx, scan.scan_id, step.name, {
    pins,
    sourcesId,
    backfillAfter: isChild ? beforeAllTasks : null,
  });
  switch (action.work.kind) {
    case 'children':
      return 0;
    case 'expansion':
      await insertExpansion(tx, owner, newId(), step.name);
      return 0;
    case 'task':
      return insertTask(tx, owner, {
        taskId: newId(),
        step: step.name,
        parentTaskId: null,
        sourcesId,
        definitionRevision: scan.definition_revision,
        noWork: action.work.noWork,
        inputsDue: !action.work.noWork && madeInputs(step).length > 0,
      });
  }
}

/** A child of each finished task in each step that rests on it; the unique index makes it one, ever. */
async function makeChildren(
  tx: Db,
  scan: ScanRow,
  definition: LiveDefinition,
): Promise<{ made: number; more: boolean }> {
  const due = await planDueTasks(tx, scan.scan_id, parentsPerPass);
  if (due.length === 0) return { made: 0, more: false };
  const steps = await readSteps(tx, scan.scan_id);
  let made = 0;
  for (const upstream of new Set(due.map((task) => task.step))) {
    const parents = due.filter((task) => task.step === upstream);
    for (const step of childStepsOf(definition, upstream)) {
      const row = steps.get(step.name);
      // A step that has not begun looks at all finished parents when it does.
      if (row?.begun && row.state === 'open' && !row.removed)
        made += await makeChildrenOf(tx, scan, definition, step, row, parents);
    }
  }
  await clearPlanDue(
    tx,
    due.map((task) => task.task_id),
  );
  return { made, more: true };
}

/** Steps that began late go through what their parent step had finished before, a page a pass. */
async function backfill(
  tx: Db,
  scan: ScanRow,
  definition: LiveDefinition,
): Promise<{ made: number; more: boolean }> {
  let made = 0;
  let more = false;
  for (const row of (await readSteps(tx, scan.scan_id)).values()) {
    const step = definition.steps.find((candidate) => candidate.name === row.step);
    const parent = step && singleNeed(step);
    if (row.backfill_after === null || row.state !== 'open' || row.removed) continue;
    if (step === undefined || parent === undefined) continue;
    const parents = await finishedTasks(tx, scan.scan_id, parent, row.backfill_after, parentsPerPass);
    made += await makeChildrenOf(tx, scan, definition, step, row, parents);
    const after = parents.length === parentsPerPass ? (parents.at(-1)?.task_id ?? null) : null;
    await moveBackfill(tx, scan.scan_id, step.name, after);
    more = true;
  }
  return { made, more };
}

/** One child a parent, ever: asking again makes nothing. */
async function makeChildrenOf(
  tx: Db,
  scan: ScanRow,
  definition: LiveDefinition,
  step: Step,
  row: StepRow,
  parents: readonly { task_id: TaskId; no_work: boolean }[],
): Promise<number> {
  if (parents.length === 0) return 0;
  if (!definition.pins.has(step.name)) {
    const pins = pinsOf(step, definition);
    definition.pins.set(step.name, pins);
    await pinStep(tx, scan.scan_id, step.name, pins);
  }
  const owner = { scanId: scan.scan_id, workspaceId: scan.workspace_id };
  const child = { step: step.name, sourcesId: row.sources_id, definitionRevision: scan.definition_revision };
  const idle = parents.filter((parent) => parent.no_work);
  const working = parents.filter((parent) => !parent.no_work);
  let made = 0;
  if (idle.length > 0)
    made += await insertChildren(tx, owner, { ...child, noWork: true, inputsDue: false }, idle.map(childOf));
  if (working.length === 0) return made;
  if (!step.foreach) {
    const inputsDue = madeInputs(step).length > 0;
    return (
      made + (await insertChildren(tx, owner, { ...child, noWork: false, inputsDue }, working.map(childOf)))
    );
  }
  await insertExpansionsOfParents(
    tx,
    owner,
    step.name,
    working.map((parent) => ({ expansionId: newId(), taskId: parent.task_id })),
  );
  return made;
}

const childOf = (parent: { task_id: TaskId }) => ({ taskId: newId<TaskId>(), parentTaskId: parent.task_id });

async function readSteps(db: Db, scanId: ScanId): Promise<Map<string, StepRow>> {
  return new Map((await stepsOfScan(db, scanId)).map((row) => [row.step, row]));
}

async function readFacts(
  db: Db,
  scanId: ScanId,
  steps: Map<string, StepRow>,
): Promise<Map<string, StepFacts>> {
  const openness = new Map((await stepOpenness(db, scanId)).map((row) => [row.step, row]));
  const counts = await taskCounts(db, scanId);
  const completed = (step: string, realWork: boolean): boolean =>
    counts.some(
      (count) => count.step === step && count.status === 'Completed' && !(realWork && count.no_work),
    );
  return new Map(
    [...steps.values()].map((row) => [
      row.step,
      {
        state: row.state,
        begun: row.begun,
        removed: row.removed,
        openTasks: openness.get(row.step)?.open_tasks ?? false,
        openExpansions: openness.get(row.step)?.open_expansions ?? false,
        planDue: openness.get(row.step)?.plan_due ?? false,
        backfilling: row.backfill_after !== null,
        completed: completed(row.step, false),
        realWork: completed(row.step, true),
      },
    ]),
  );
}
