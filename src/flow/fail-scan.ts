// A fault that no retry mends: the scan ends Failed, and nothing of it is left to wait for.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { changeScanStatus } from '#sonar/stores/scans.ts';
import { cancelOpenTasks } from '#sonar/stores/tasks.ts';

const allOfThem = 2_000_000_000;

/** In the caller's transaction, under the scan's lock; results that come later are superseded. */
export async function failScan(tx: Db, scanId: ScanId, reason: string): Promise<void> {
  const failed = await changeScanStatus(tx, scanId, {
    from: ['Running', 'Paused'],
    to: 'Failed',
    finished: true,
    reason,
  });
  if (failed > 0) await cancelOpenTasks(tx, scanId, failureCodes.scanFailed, allOfThem);
}
