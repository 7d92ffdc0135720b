// Things by the id that somebody gave, or a fault that says how to find the right one.
import { type ScanId, uuidPattern } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { findScan, listScans, type ScanRow } from '#sonar/stores/scans.ts';
import { findTask, type TaskViewRow } from '#sonar/stores/task-views.ts';

/** @throws SonarError `not_found` */
export async function taskOf(db: Db, workspaceId: string, id: string): Promise<TaskViewRow> {
  const task = uuidPattern.test(id) ? await findTask(db, workspaceId, id) : undefined;
  if (task) return task;
  throw new SonarError(
    'not_found',
    `there is no task "${id}"; list them with: sonar task list --scan latest`,
  );
}

/** @throws SonarError `not_found`; `latest` is the scan that was started last. */
export async function scanOf(db: Db, workspaceId: string, id: string): Promise<ScanRow> {
  const scan =
    id === 'latest'
      ? (await listScans(db, workspaceId, { status: null, after: null, limit: 1 }))[0]
      : uuidPattern.test(id)
        ? await findScan(db, id as ScanId)
        : undefined;
  if (scan?.workspace_id === workspaceId) return scan;
  throw new SonarError(
    'not_found',
    id === 'latest'
      ? 'there is no scan; start one with: sonar scan start'
      : `there is no scan "${id}"; list them with: sonar scan list`,
  );
}
