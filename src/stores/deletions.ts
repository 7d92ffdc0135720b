// The statements by which a scan goes: marked first, then its rows in bounded batches, its own row last.
import type { AttemptId, ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

/**
 * From here on the scan exists for nobody but its deletion, and its client key is free. Its attempts are over: nobody is
 * given a place for an upload any more.
 */
export async function markDeleted(db: Db, scanId: ScanId): Promise<number> {
  const marked = await db.execute(sql('deletion.mark')`
    update sonar.scan set deleting_at = clock_timestamp(), client_key = null
    where scan_id = ${scanId} and deleting_at is null`);
  await db.execute(sql('deletion.end_attempts')`
    with locked as (
      select attempt_id from sonar.attempt where scan_id = ${scanId} and ended_at is null order by attempt_id for update)
    update sonar.attempt a set ended_at = clock_timestamp(), end_reason = 'superseded'
    from locked l where a.attempt_id = l.attempt_id`);
  return marked;
}

export interface DeletionRow {
  scan_id: ScanId;
  workspace_id: string;
  /** No upload that was granted before can still arrive: its row may go. */
  ripe: boolean;
}

/** The one that waits longest and has something left to do. */
export async function nextDeletion(db: Db, uploadsMs: number): Promise<DeletionRow | undefined> {
  const [row] = await db.rows<DeletionRow>(sql('deletion.next')`
    select s.scan_id, s.workspace_id, r.ripe
    from sonar.scan s
    cross join lateral (select s.deleting_at < clock_timestamp() - ${uploadsMs} * interval '1 millisecond' as ripe) r
    where s.deleting_at is not null
      and (r.ripe or exists (select from sonar.scan_step t where t.scan_id = s.scan_id))
    order by s.deleting_at limit 1`);
  return row;
}

/** In the transaction of each batch: false where another process is at it, or has finished. */
export async function lockDeletion(db: Db, scanId: ScanId): Promise<boolean> {
  const rows = await db.rows(sql('deletion.lock')`
    select from sonar.scan where scan_id = ${scanId} and deleting_at is not null for update skip locked`);
  return rows.length > 0;
}

export async function tasksToDelete(
  db: Db,
  scanId: ScanId,
  limit: number,
): Promise<{ tasks: TaskId[]; attempts: AttemptId[] }> {
  const tasks = await db.rows<{ task_id: TaskId }>(sql('deletion.tasks')`
    select task_id from sonar.task where scan_id = ${scanId} order by task_id limit ${limit} for update`);
  const ids = tasks.map((row) => row.task_id);
  const attempts = await db.rows<{ attempt_id: AttemptId }>(sql('deletion.attempts')`
    select attempt_id from sonar.attempt where task_id = any(${ids}::uuid[]) order by attempt_id for update`);
  return { tasks: ids, attempts: attempts.map((row) => row.attempt_id) };
}

/** With everything that hangs on them. */
export async function deleteTasks(
  db: Db,
  { tasks, attempts }: { tasks: readonly TaskId[]; attempts: readonly AttemptId[] },
): Promise<void> {
  await db.execute(sql('deletion.finalizations')`
    delete from sonar.finalization where task_id = any(${tasks}::uuid[])`);
  await db.execute(
    sql('deletion.task_files')`delete from sonar.task_file where task_id = any(${tasks}::uuid[])`,
  );
  await db.execute(sql('deletion.output_files')`
    delete from sonar.output_file where attempt_id = any(${attempts}::uuid[])`);
  await db.execute(
    sql('deletion.results')`delete from sonar.result where attempt_id = any(${attempts}::uuid[])`,
  );
  await db.execute(sql('deletion.deliveries')`
    delete from sonar.outbox_delivery_queue q using sonar.outbox_events e
    where q.event_id = e.event_id and e.attempt_id = any(${attempts}::uuid[])`);
  await db.execute(sql('deletion.events')`
    delete from sonar.outbox_events where attempt_id = any(${attempts}::uuid[])`);
  await db.execute(sql('deletion.of_attempts')`
    delete from sonar.attempt where attempt_id = any(${attempts}::uuid[])`);
  await db.execute(sql('deletion.of_tasks')`delete from sonar.task where task_id = any(${tasks}::uuid[])`);
}

/** What planning has kept of the scan, the largest first; 0: nothing is left of it. */
export async function deletePlanning(db: Db, scanId: ScanId, limit: number): Promise<number> {
  return (
    (await db.execute(sql('deletion.staged_rows')`
      delete from sonar.expansion_row where (expansion_id, ordinal) in (
        select r.expansion_id, r.ordinal from sonar.expansion e join sonar.expansion_row r using (expansion_id)
        where e.scan_id = ${scanId} limit ${limit})`)) ||
    (await db.execute(sql('deletion.unique_items')`
      delete from sonar.unique_item where scan_id = ${scanId} and (step, value_sha256) in (
        select step, value_sha256 from sonar.unique_item where scan_id = ${scanId} limit ${limit})`)) ||
    (await db.execute(sql('deletion.expansions')`
      delete from sonar.expansion where expansion_id in (
        select expansion_id from sonar.expansion where scan_id = ${scanId} limit ${limit})`)) ||
    (await db.execute(sql('deletion.pinned_sources')`
      delete from sonar.pinned_source where (owner_id, ordinal) in (
        select owner_id, ordinal from sonar.pinned_source where scan_id = ${scanId} limit ${limit})`)) ||
    (await db.execute(sql('deletion.input_files')`
      delete from sonar.input_file where (owner_id, step, input) in (
        select owner_id, step, input from sonar.input_file where scan_id = ${scanId} limit ${limit})`))
  );
}

/** Its inputs, counts and steps, of which there are few. The uploaded files that nobody else refers to are doomed. */
export async function deleteInputsAndSteps(db: Db, scanId: ScanId): Promise<void> {
  const files = await db.rows<{ workspace_id: string; sha256: string }>(sql('deletion.inputs')`
    with gone as (delete from sonar.scan_input where scan_id = ${scanId} returning workspace_id, file_sha256)
    select workspace_id, file_sha256 as sha256 from gone where file_sha256 is not null order by 1, 2`);
  await doomUnusedFiles(db, files);
  await db.execute(sql('deletion.counts')`delete from sonar.task_count where scan_id = ${scanId}`);
  await db.execute(
    sql('deletion.count_deltas')`delete from sonar.task_count_delta where scan_id = ${scanId}`,
  );
  await db.execute(sql('deletion.steps')`delete from sonar.scan_step where scan_id = ${scanId}`);
}

async function doomUnusedFiles(
  db: Db,
  files: readonly { workspace_id: string; sha256: string }[],
): Promise<void> {
  if (files.length === 0) return;
  const workspaces = files.map((file) => file.workspace_id);
  const hashes = files.map((file) => file.sha256);
  // Locked in a statement of its own: whoever refers to one of them meanwhile is seen by the next.
  await db.rows(sql('deletion.lock_files')`
    select from sonar.stored_file f
    join unnest(${workspaces}::text[], ${hashes}::text[]) as gone (workspace_id, sha256) using (workspace_id, sha256)
    order by f.workspace_id, f.sha256 for update of f`);
  await db.execute(sql('deletion.doom_files')`
    with unused as (
      delete from sonar.stored_file f
      using unnest(${workspaces}::text[], ${hashes}::text[]) as gone (workspace_id, sha256)
      where f.workspace_id = gone.workspace_id and f.sha256 = gone.sha256
        and not exists (select from sonar.scan_input i where i.workspace_id = f.workspace_id and i.file_sha256 = f.sha256)
        and not exists (select from sonar.definition_file d where d.workspace_id = f.workspace_id and d.sha256 = f.sha256)
        and not exists (select from sonar.inventory_import m where m.workspace_id = f.workspace_id and m.sha256 = f.sha256)
      returning f.workspace_id, f.object_key)
    insert into sonar.doomed_object (object_key, workspace_id) select object_key, workspace_id from unused
    on conflict (object_key) do nothing`);
}

export async function doomedObjects(db: Db, limit: number): Promise<string[]> {
  const rows = await db.rows<{ object_key: string }>(sql('deletion.doomed')`
    select object_key from sonar.doomed_object order by doomed_at limit ${limit}`);
  return rows.map((row) => row.object_key);
}

export async function forgetDoomed(db: Db, keys: readonly string[]): Promise<void> {
  await db.execute(sql('deletion.forget_doomed')`
    delete from sonar.doomed_object where object_key = any(${keys}::text[])`);
}

/** Once everything that hangs on it is gone. */
export function deleteScanRow(db: Db, scanId: ScanId): Promise<number> {
  return db.execute(sql('deletion.scan')`
    delete from sonar.scan s where s.scan_id = ${scanId} and s.deleting_at is not null
      and not exists (select from sonar.scan_step t where t.scan_id = s.scan_id)`);
}
