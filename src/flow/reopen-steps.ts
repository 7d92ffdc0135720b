// What a retry or a repair means for the other steps of a scan, under the scan's lock: its own step and the children
// of its results may get tasks again, and what rested on all results of them is void and made anew.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { type RetryEffects, retryEffects } from '#sonar/domain/retry.ts';
import {
  dropPlanning,
  endReopening,
  reopeningSteps,
  reopenSteps,
  retryTasks,
  supersedeTasks,
} from '#sonar/stores/retries.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { stepsOfScan } from '#sonar/stores/steps.ts';
import { cancelTasks, lockOpenTasks } from '#sonar/stores/tasks.ts';
import { readLiveDefinition } from './take-revision.ts';

// Staged rows, known values, expansions, input files: each once, and then nothing is left.
const kindsOfPlanning = 5;
// Each statement is far below its time limit, whatever the size of the scan.
const tasksPerBatch = 5_000;

export async function effectsOf(
  tx: Db,
  revisions: Revisions,
  scan: ScanRow,
  steps: readonly string[],
): Promise<RetryEffects> {
  const live = await readLiveDefinition(tx, revisions, scan, await stepsOfScan(tx, scan.scan_id));
  return retryEffects(live, new Set(steps));
}

/** Marked here; {@link workOffReopening} carries it out. */
export async function applyEffects(
  tx: Db,
  scanId: ScanId,
  { reopened, superseded }: RetryEffects,
): Promise<void> {
  await reopenSteps(tx, scanId, reopened, false);
  await reopenSteps(tx, scanId, superseded, true);
}

/**
 * A batch of what retries and repairs have asked for, under the scan's lock. A scan of a million tasks would keep one
 * statement from ever ending in its time.
 * @returns whether there is more; until there is none, nothing of the scan is planned or settled.
 */
export async function workOffReopening(tx: Db, scanId: ScanId): Promise<boolean> {
  const marked = await reopeningSteps(tx, scanId);
  if (marked.length === 0) return false;
  const voiding = marked.filter((row) => row.voiding).map((row) => row.step);
  // Tasks of steps that begin anew are made anew with them.
  for (const { step } of marked.filter((row) => row.retrying && !row.voiding))
    if ((await retryTasks(tx, scanId, step, null, tasksPerBatch)) === tasksPerBatch) return true;
  if (voiding.length > 0 && (await voidSteps(tx, scanId, voiding))) return true;
  await endReopening(tx, scanId);
  return false;
}

async function voidSteps(tx: Db, scanId: ScanId, steps: readonly string[]): Promise<boolean> {
  const open = await lockOpenTasks(tx, scanId, steps, tasksPerBatch);
  await cancelTasks(tx, open, {
    code: failureCodes.superseded,
    message: 'what it rested on is tried or read again',
  });
  if (open.length === tasksPerBatch) return true;
  if ((await supersedeTasks(tx, scanId, steps, tasksPerBatch)) === tasksPerBatch) return true;
  for (let kinds = 0; kinds < kindsOfPlanning; kinds += 1) {
    const dropped = await dropPlanning(tx, scanId, steps, tasksPerBatch);
    if (dropped === tasksPerBatch) return true;
    if (dropped === 0) return false;
  }
  return true;
}
