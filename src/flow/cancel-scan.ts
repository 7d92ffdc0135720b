// The end that somebody asked for: committed to the scan's row; the scan's next tick carries it out.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { mayScan } from '#sonar/domain/scan-states.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { changeScanStatus, lockScan, type ScanRow } from '#sonar/stores/scans.ts';

/**
 * Idempotent while the scan is open.
 * @throws SonarError `not_found`, or `conflict` where the scan has ended otherwise.
 */
export function cancelScan(database: Database, scanId: ScanId, reason: string): Promise<ScanRow> {
  return database.transaction(async (tx) => {
    const scan = await lockScan(tx, scanId);
    if (!scan) throw new SonarError('not_found', `there is no scan ${scanId}`);
    if (scan.status === 'Cancelling' || scan.status === 'Cancelled') return scan;
    if (!mayScan(scan.status, 'cancel'))
      throw new SonarError('conflict', `scan ${scanId} has ended: ${scan.status}`);
    await changeScanStatus(tx, scanId, {
      from: ['Running', 'Paused'],
      to: 'Cancelling',
      finished: false,
      reason,
    });
    return { ...scan, status: 'Cancelling', reason };
  });
}
