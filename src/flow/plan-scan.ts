// One planning pass of a scan: begins steps whose needs are met, makes the children of finished tasks,
// settles what is over. Everything is derived from rows; a repeated or overlapping pass makes nothing twice.
import type { Definition, Step } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { childStepsOf, type PlanAction, planSteps, type StepFacts } from '#sonar/domain/plan.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { madeInputs } from '#sonar/domain/step-inputs.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import { findRevision } from '#sonar/stores/definitions.ts';
import { insertExpansion, insertExpansionsOfParents } from '#sonar/stores/expansions.ts';
import { inputsAreDue } from '#sonar/stores/input-files.ts';
import { lockScan, recordTick, type ScanRow } from '#sonar/stores/scans.ts';
import { activateStep, closeStep, type StepRow, stepsOfScan } from '#sonar/stores/steps.ts';
import { foldTaskCounts } from '#sonar/stores/task-counts.ts';
import {
  cancelOpenTasks,
  clearPlanDue,
  insertChildren,
  insertTask,
  markPlanDue,
  pinSources,
  planDueTasks,
  stepOpenness,
  stepOutcomes,
} from '#sonar/stores/tasks.ts';
import { endAbandonedAttempts } from '#sonar/stores/workers.ts';

export interface PlanPass {
  scan: ScanRow;
  /** Undefined where the scan is not Running: nothing is planned then. */
  definition: Definition | undefined;
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

type PlanSettings = Pick<Settings, 'SONAR_CANCEL_GRACE_MS' | 'SONAR_ALIVE_WITHIN_MS'>;

/** @throws SonarError `not_found` where there is no such scan. */
export function planScan(database: Database, scanId: ScanId, settings: PlanSettings): Promise<PlanPass> {
  return database.transaction(async (tx) => {
    const scan = await lockScan(tx, scanId);
    if (!scan) throw new SonarError('not_found', `there is no scan ${scanId}`);
    await recordTick(tx, scanId);
    if (scan.status === 'Cancelling') return cancelPass(tx, scan, settings);
    if (scan.status !== 'Running')
      return emptyPass(scan, isScanOpen(scan.status) ? await readSteps(tx, scanId) : new Map());
    return runningPass(tx, scan);
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

async function cancelPass(tx: Db, scan: ScanRow, settings: PlanSettings): Promise<PlanPass> {
  const cancelled = await cancelOpenTasks(tx, scan.scan_id, failureCodes.scanCancelled, cancelledPerPass);
  await endAbandonedAttempts(
    tx,
    scan.scan_id,
    settings.SONAR_CANCEL_GRACE_MS,
    settings.SONAR_ALIVE_WITHIN_MS,
  );
  await foldTaskCounts(tx, scan.scan_id);
  return {
    ...emptyPass(scan, await readSteps(tx, scan.scan_id)),
    progressed: cancelled === cancelledPerPass,
  };
}

async function runningPass(tx: Db, scan: ScanRow): Promise<PlanPass> {
  const revision = await findRevision(tx, scan.workspace_id, scan.definition_name, scan.definition_revision);
  if (!revision)
    throw new SonarError(
      'internal',
      `definition ${scan.definition_name} lost revision ${scan.definition_revision}`,
    );
  const definition = revision.compiled;
  const children = await makeChildren(tx, scan, definition);
  const before = await readSteps(tx, scan.scan_id);
  const facts = await readFacts(tx, scan.scan_id, before);
  const actions = planSteps(definition, facts);
  let made = children.made;
  for (const action of actions) made += await act(tx, scan, action);
  await foldTaskCounts(tx, scan.scan_id);
  return {
    scan,
    definition,
    steps: actions.length > 0 ? await readSteps(tx, scan.scan_id) : before,
    facts,
    made,
    inputsDue: await inputsAreDue(tx, scan.scan_id),
    progressed: actions.length > 0 || children.more,
  };
}

async function act(tx: Db, scan: ScanRow, action: PlanAction): Promise<number> {
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
  await activateStep(tx, scan.scan_id, step.name, pinsOf(step), sourcesId);
  switch (action.work.kind) {
    case 'children':
      await markPlanDue(tx, scan.scan_id, action.work.of);
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

/** What a step's first task fixes for its scan. */
const pinsOf = (step: Step) => ({
  needs: step.needs,
  foreach: step.foreach,
  inputs: step.inputs,
  outputs: step.outputs.map((output) => output.name),
});

/** A child of each finished task in each step that rests on it; the unique index makes it one, ever. */
async function makeChildren(
  tx: Db,
  scan: ScanRow,
  definition: Definition,
): Promise<{ made: number; more: boolean }> {
  const due = await planDueTasks(tx, scan.scan_id, parentsPerPass);
  if (due.length === 0) return { made: 0, more: false };
  const steps = await readSteps(tx, scan.scan_id);
  const owner = { scanId: scan.scan_id, workspaceId: scan.workspace_id };
  let made = 0;
  for (const upstream of new Set(due.map((task) => task.step))) {
    const parents = due.filter((task) => task.step === upstream);
    for (const step of childStepsOf(definition, upstream)) {
      const row = steps.get(step.name);
      // A step that has not begun looks at all finished parents when it does.
      if (!row?.activated || row.state !== 'open') continue;
      const child = {
        step: step.name,
        sourcesId: row.sources_id,
        definitionRevision: scan.definition_revision,
      };
      const idle = parents.filter((parent) => parent.no_work);
      const working = parents.filter((parent) => !parent.no_work);
      if (idle.length > 0)
        made += await insertChildren(
          tx,
          owner,
          { ...child, noWork: true, inputsDue: false },
          idle.map(childOf),
        );
      if (working.length === 0) continue;
      if (step.foreach)
        await insertExpansionsOfParents(
          tx,
          owner,
          step.name,
          working.map((parent) => ({ expansionId: newId(), taskId: parent.task_id })),
        );
      else {
        const inputsDue = madeInputs(step).length > 0;
        made += await insertChildren(tx, owner, { ...child, noWork: false, inputsDue }, working.map(childOf));
      }
    }
  }
  await clearPlanDue(
    tx,
    due.map((task) => task.task_id),
  );
  return { made, more: true };
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
  const outcomes = new Map((await stepOutcomes(db, scanId)).map((row) => [row.step, row]));
  return new Map(
    [...steps.values()].map((row) => [
      row.step,
      {
        state: row.state,
        activated: row.activated,
        openTasks: openness.get(row.step)?.open_tasks ?? false,
        openExpansions: openness.get(row.step)?.open_expansions ?? false,
        planDue: openness.get(row.step)?.plan_due ?? false,
        completed: outcomes.get(row.step)?.completed ?? false,
        realWork: outcomes.get(row.step)?.real_work ?? false,
      },
    ]),
  );
}
