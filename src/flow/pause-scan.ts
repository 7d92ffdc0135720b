// Held and let go: a Paused scan plans, places and settles nothing; what was dispatched goes on.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { mayScan } from '#sonar/domain/scan-states.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { changeScanStatus, keepPassesOut, lockScan, type ScanRow } from '#sonar/stores/scans.ts';

const changes = {
  pause: { from: 'Running', to: 'Paused' },
  resume: { from: 'Paused', to: 'Running' },
} as const;

/**
 * Idempotent.
 * @throws SonarError `not_found`, or `conflict` where the scan's state does not allow it.
 */
export function pauseScan(database: Database, scanId: ScanId, event: keyof typeof changes): Promise<ScanRow> {
  return database.transaction(async (tx) => {
    // Nothing is placed once the pause was answered.
    if (event === 'pause') await keepPassesOut(tx, scanId);
    const scan = await lockScan(tx, scanId);
    if (!scan) throw new SonarError('not_found', `there is no scan ${scanId}`);
    const { from, to } = changes[event];
    if (scan.status === to) return scan;
    if (!mayScan(scan.status, event))
      throw new SonarError(
        'conflict',
        `scan ${scanId} is ${scan.status}; only a ${from} scan can be ${to === 'Paused' ? 'paused' : 'resumed'}`,
      );
    await changeScanStatus(tx, scanId, { from: [from], to, finished: false, reason: null });
    return { ...scan, status: to };
  });
}
