// A scan ends: under its lock everything is judged again, and only when nothing is open does it get a state.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { ScanStatus } from '#sonar/contracts/states.ts';
import type { Database } from '#sonar/db/pool.ts';
import { isScanOpen, settledStatus } from '#sonar/domain/scan-states.ts';
import { changeScanStatus, lockScan } from '#sonar/stores/scans.ts';
import { settlementOf } from '#sonar/stores/settlement.ts';
import { type TaskCount, taskCounts } from '#sonar/stores/task-counts.ts';
import { hasNewerRevision } from './take-revision.ts';

/** @returns the state after it: terminal, or the open one that the scan stays in. Undefined: no such scan. */
export function settleScan(database: Database, scanId: ScanId): Promise<ScanStatus | undefined> {
  return database.transaction(async (tx) => {
    const scan = await lockScan(tx, scanId);
    if (!scan) return undefined;
    if (!isScanOpen(scan.status) || scan.status === 'Paused') return scan.status;
    const facts = await settlementOf(tx, scanId);
    if (facts.open_tasks || facts.unread) return scan.status;
    if (scan.status === 'Cancelling') {
      if (facts.in_flight) return scan.status;
      await changeScanStatus(tx, scanId, {
        from: ['Cancelling'],
        to: scan.failing ? 'Failed' : 'Cancelled',
        finished: true,
        reason: null,
      });
      return scan.failing ? 'Failed' : 'Cancelled';
    }
    // An edit that came since the last pass is looked at by the next one.
    if (await hasNewerRevision(tx, scan)) return scan.status;
    if (facts.open_steps || facts.open_expansions || facts.plan_due) return scan.status;
    const to = settledStatus({
      blocked: facts.blocked,
      withoutSuccess: hasStepWithoutSuccess(await taskCounts(tx, scanId)),
      poisoned: facts.poisoned,
    });
    await changeScanStatus(tx, scanId, { from: ['Running'], to, finished: true, reason: null });
    return to;
  });
}

/** A step that has terminal tasks of which none is completed. */
function hasStepWithoutSuccess(counts: readonly TaskCount[]): boolean {
  const completed = new Set(
    counts.filter((count) => count.status === 'Completed').map((count) => count.step),
  );
  return counts.some(
    (count) => (count.status === 'Failed' || count.status === 'Cancelled') && !completed.has(count.step),
  );
}
