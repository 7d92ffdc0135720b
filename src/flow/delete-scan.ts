// A scan that has ended goes with everything it left. It is marked first and exists for nobody from then on; the rest is
// done in bounded batches by whichever reconciler comes by, each safe to repeat, so a kill at any point only delays it.
// Objects go before the rows that name them.
import type { ScanId } from '#sonar/contracts/ids.ts';
import { scanObjects } from '#sonar/contracts/names.ts';
import type { Database } from '#sonar/db/pool.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import {
  type DeletionRow,
  deleteInputsAndSteps,
  deletePlanning,
  deleteScanRow,
  deleteTasks,
  doomedObjects,
  forgetDoomed,
  lockDeletion,
  markDeleted,
  nextDeletion,
  tasksToDelete,
} from '#sonar/stores/deletions.ts';
import { lockScan, type ScanRow } from '#sonar/stores/scans.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import type { TemporalGateway } from '#sonar/transport/temporal-client.ts';
import { forgetScan } from './refold-inventory.ts';

export interface DeleteParts {
  database: Database;
  objects: ObjectStore;
  temporal: Pick<TemporalGateway, 'forgetScan'>;
  settings: Pick<Settings, 'SONAR_URL_LIFE_MS'>;
  log: Logger;
}

const tasksPerBatch = 500;
const rowsPerBatch = 5_000;
const objectsPerBatch = 1_000;

/** @throws SonarError `not_found`, or `conflict` where the scan has not ended. */
export function deleteScan(database: Database, scanId: ScanId): Promise<ScanRow> {
  return database.transaction(async (tx) => {
    const scan = await lockScan(tx, scanId);
    if (!scan) throw new SonarError('not_found', `there is no scan ${scanId}`);
    if (isScanOpen(scan.status))
      throw new SonarError(
        'conflict',
        `scan ${scanId} is ${scan.status}; only one that has ended is deleted: sonar scan cancel ${scanId}, and again when it is Cancelled`,
      );
    await markDeleted(tx, scanId);
    return scan;
  });
}

/**
 * Works on the deletion that waits longest, until `signal` aborts or it is done.
 * @returns whether there may be more to do at once.
 */
export async function workOffDeletion(parts: DeleteParts, signal: AbortSignal): Promise<boolean> {
  const { database, objects } = parts;
  const doomed = await doomedObjects(database, objectsPerBatch);
  if (doomed.length > 0) {
    await objects.remove(doomed);
    await forgetDoomed(database, doomed);
  }
  // A place that was granted just before the mark is good for so long, and an upload into it takes its time.
  const scan = await nextDeletion(database, 2 * parts.settings.SONAR_URL_LIFE_MS);
  if (!scan) return doomed.length === objectsPerBatch;
  const prefix = scanObjects(scan.workspace_id, scan.scan_id);
  while ((await objects.removeUnder(prefix)) > 0) if (signal.aborted) return true;
  while (!(await forgetScan(database, scan.scan_id)).done) if (signal.aborted) return true;
  while (await deleteBatch(parts, scan)) if (signal.aborted) return true;
  if (!scan.ripe) return true;
  await parts.temporal.forgetScan(scan.scan_id);
  if ((await deleteScanRow(database, scan.scan_id)) > 0)
    parts.log.info({ operation: 'scan_deleted', scanId: scan.scan_id });
  return true;
}

/** False where nothing but the scan's own row is left, or another process is at it. */
function deleteBatch({ database }: DeleteParts, { scan_id: scanId }: DeletionRow): Promise<boolean> {
  return database.transaction(async (tx) => {
    if (!(await lockDeletion(tx, scanId))) return false;
    const batch = await tasksToDelete(tx, scanId, tasksPerBatch);
    if (batch.tasks.length > 0) {
      await deleteTasks(tx, batch);
      return true;
    }
    if ((await deletePlanning(tx, scanId, rowsPerBatch)) > 0) return true;
    await deleteInputsAndSteps(tx, scanId);
    return false;
  });
}
