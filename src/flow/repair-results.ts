// Results that could not be read are read again: due in the same transaction in which their scan is open once more.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import { type ScanId, uuidPattern } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { repairStatus } from '#sonar/domain/scan-states.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { findPoison, type PoisonState, repairFinalizations } from '#sonar/stores/poison.ts';
import { reopenScan } from '#sonar/stores/retries.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import { findScan, lockScan, type ScanRow } from '#sonar/stores/scans.ts';
import { applyEffects, effectsOf, workOffReopening } from './reopen-steps.ts';

interface RepairParts {
  database: Database;
  revisions: Revisions;
}

interface Repaired {
  scan: ScanRow;
  repaired: number;
}

/**
 * One result. Asked again while it waits to be read, nothing changes. The caller starts or wakes the scan's workflow
 * after the commit.
 * @throws SonarError `not_found`, or `conflict` where it is not poisoned any more or the scan is being cancelled.
 */
export async function repairResult(parts: RepairParts, workspaceId: string, id: string): Promise<Repaired> {
  const found = uuidPattern.test(id) ? await findPoison(parts.database, workspaceId, id) : undefined;
  if (!found)
    throw new SonarError(
      'not_found',
      `there is no poisoned result "${id}"; list them with: sonar poison list`,
    );
  return repair(parts, found.scan_id, { workspaceId, id });
}

/** Every poisoned result of a scan. @throws as {@link repairResult}, and `conflict` where there is none. */
export function repairResultsOf(parts: RepairParts, scanId: ScanId): Promise<Repaired> {
  return repair(parts, scanId, null);
}

function repair(
  parts: RepairParts,
  scanId: ScanId,
  one: { workspaceId: string; id: string } | null,
): Promise<Repaired> {
  return parts.database.transaction(async (tx) => {
    const scan = await lockScan(tx, scanId);
    if (!scan) throw new SonarError('not_found', `there is no scan ${scanId}`);
    const to = repairStatus(scan.status);
    if (!to)
      throw new SonarError('conflict', `scan ${scanId} is being cancelled; repair when it is Cancelled`);
    if (one !== null) {
      // Under the scan's lock: only a reader of the row itself can still change its state.
      const state = await findPoison(tx, one.workspaceId, one.id);
      if (state?.status === 'due') return { scan, repaired: 0 };
      const fault = faultOf(state);
      if (fault !== undefined) throw new SonarError('conflict', `result ${one.id}: ${fault}`);
    }
    const rows = await repairFinalizations(tx, scanId, one?.id ?? null, failureCodes.poisoned);
    if (rows.length === 0)
      throw new SonarError('conflict', `scan ${scanId} has no poisoned result to repair`);
    // A command that failed by itself stays Failed: nobody downstream reads more than before.
    const steps = [...new Set(rows.filter((row) => row.completes).map((row) => row.step))];
    // Of a cancelled scan nothing is made anew, so nothing is void.
    if (steps.length > 0 && to !== 'Cancelling')
      await applyEffects(tx, scanId, await effectsOf(tx, parts.revisions, scan, steps));
    await workOffReopening(tx, scanId);
    if (to !== 'Paused') await reopenScan(tx, scanId, to);
    return { scan: (await findScan(tx, scanId)) as ScanRow, repaired: rows.length };
  });
}

function faultOf(state: PoisonState | undefined): string | undefined {
  if (state?.status === 'done') return 'it has been read; there is nothing to repair';
  if (state?.superseded)
    return 'its task rested on results that were made anew; what counts is the newer task';
  if (state?.status === 'superseded')
    return 'its task was retried; what counts is the result of the new attempt';
  return undefined;
}
