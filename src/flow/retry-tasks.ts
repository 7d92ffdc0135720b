// Failed and Cancelled tasks are tried again, from nothing: the scan is open once more, and what rested on all
// results of their steps is made anew.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { forgetMissingPrograms } from '#sonar/stores/missing-programs.ts';
import {
  askRetry,
  owedSteps,
  reopenScan,
  retryableSteps,
  retryTasks as retryTaskRows,
} from '#sonar/stores/retries.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import { findScan, lockScan, type ScanRow } from '#sonar/stores/scans.ts';
import { applyEffects, effectsOf, workOffReopening } from './reopen-steps.ts';

/**
 * All Failed and Cancelled tasks of a scan, or the given one. The caller starts or wakes the scan's workflow after
 * the commit.
 * @throws SonarError `not_found`, or `conflict` where there is nothing to retry or the scan is being cancelled.
 */
export function retryTasks(
  parts: { database: Database; revisions: Revisions },
  scanId: ScanId,
  taskId: string | null,
): Promise<{ scan: ScanRow; retried: number }> {
  return parts.database.transaction(async (tx) => {
    const scan = await lockScan(tx, scanId);
    if (!scan) throw new SonarError('not_found', `there is no scan ${scanId}`);
    if (scan.status === 'Cancelling')
      throw new SonarError('conflict', `scan ${scanId} is being cancelled; retry when it is Cancelled`);
    const steps = await retryableSteps(tx, scanId, taskId);
    // What an ended scan has read since it was cancelled is new to all that rests on it, as what is retried will be.
    const owed = isScanOpen(scan.status) ? [] : await owedSteps(tx, scanId);
    if (steps.length === 0 && (taskId !== null || owed.length === 0))
      throw new SonarError(
        'conflict',
        taskId === null
          ? `scan ${scanId} has no Failed or Cancelled task to retry`
          : `task ${taskId} is not Failed or Cancelled, or its step was removed, so there is nothing to retry`,
      );
    const names = steps.map((row) => row.step);
    const effects = await effectsOf(tx, parts.revisions, scan, [...names, ...owed]);
    // Tasks of steps that begin anew are made anew with them.
    const asked = steps.filter((row) => effects.reopened.includes(row.step));
    if (taskId === null) await askRetry(tx, scanId, asked);
    for (const { step } of asked) {
      if (taskId !== null) await retryTaskRows(tx, scanId, step, taskId, 1);
      await forgetMissingPrograms(tx, scanId, step);
    }
    await applyEffects(tx, scanId, effects);
    // The first batch at once: of most scans there is no other.
    await workOffReopening(tx, scanId);
    const retried = asked.reduce((sum, row) => sum + row.tasks, 0);
    await reopenScan(tx, scanId, 'Running');
    return { scan: (await findScan(tx, scanId)) as ScanRow, retried };
  });
}
