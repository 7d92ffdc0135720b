// What a retry or a repair means for the other steps of a scan, under the scan's lock: its own step and the children
// of its results may get tasks again, and what rested on all results of them is void and made anew.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { type RetryEffects, retryEffects } from '#sonar/domain/retry.ts';
import { dropInputFiles } from '#sonar/stores/input-files.ts';
import { dropExpansions, reopenSteps, supersedeTasks } from '#sonar/stores/retries.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { stepsOfScan } from '#sonar/stores/steps.ts';
import { cancelTasks, lockOpenTasks } from '#sonar/stores/tasks.ts';
import { readLiveDefinition } from './take-revision.ts';

// What runs or waits is bounded by the fleet and by one step's tasks, so one batch holds it.
const allOfThem = 2_000_000;

export async function effectsOf(
  tx: Db,
  revisions: Revisions,
  scan: ScanRow,
  steps: readonly string[],
): Promise<RetryEffects> {
  const live = await readLiveDefinition(tx, revisions, scan, await stepsOfScan(tx, scan.scan_id));
  return retryEffects(live, new Set(steps));
}

/** @param why what the tasks that are cancelled say */
export async function applyEffects(
  tx: Db,
  scanId: ScanId,
  { reopened, superseded }: RetryEffects,
  why: string,
): Promise<void> {
  await cancelTasks(tx, await lockOpenTasks(tx, scanId, superseded, allOfThem), {
    code: failureCodes.superseded,
    message: why,
  });
  await supersedeTasks(tx, scanId, superseded);
  await dropExpansions(tx, scanId, superseded);
  await dropInputFiles(tx, scanId, superseded);
  await reopenSteps(tx, scanId, reopened, false);
  await reopenSteps(tx, scanId, superseded, true);
}
