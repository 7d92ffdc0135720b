// A fault that no retry mends: the scan ends Failed, and nothing of it is left to wait for.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { isSonarError, messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { changeScanStatus, lockScan } from '#sonar/stores/scans.ts';
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

/**
 * A fault while a step's sources were read: one that is gone or is not what was accepted fails the scan; what
 * may pass by itself is logged and tried again; the rest is thrown on.
 */
export async function onSourceFault(
  parts: { database: Database; log: Logger },
  scanId: ScanId,
  step: string,
  error: unknown,
): Promise<void> {
  parts.log.error({ operation: 'source_failed', scanId, step, error: messageOf(error) });
  const lost = isSonarError(error, 'not_found') || isSonarError(error, 'invalid');
  if (lost)
    await parts.database.transaction(async (tx) => {
      await lockScan(tx, scanId);
      await failScan(tx, scanId, `${failureCodes.sourceLost}: step ${step}: ${messageOf(error)}`);
    });
  else if (!isSonarError(error)) throw error;
}
