// Results that could not be read: what operators see of them, and how they are read again.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { AttemptId, FinalizationId, ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { TaskStatus } from '#sonar/contracts/states.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface PoisonedRow {
  finalization_id: FinalizationId;
  scan_id: ScanId;
  scan_name: string;
  task_id: TaskId;
  step: string;
  item: JsonValue | null;
  attempt_id: AttemptId;
  worker_name: string | null;
  task_status: TaskStatus;
  error: string | null;
  sample_file: string | null;
  sample: string | null;
  size: number;
  attempts: number;
  finished_at: string | null;
}

/** In the order in which the results were accepted, after the given id. */
export function listPoisoned(
  db: Db,
  workspaceId: string,
  filter: { scanId: string | null; after: string | null; limit: number },
): Promise<PoisonedRow[]> {
  return db.rows(sql('poison.list')`
    select f.finalization_id, f.scan_id, s.name as scan_name, f.task_id, t.step, t.item, f.attempt_id, a.worker_name,
           t.status as task_status, f.error, f.sample_file, f.sample, f.size, f.attempts, f.finished_at
    from sonar.finalization f
    join sonar.task t on t.task_id = f.task_id and t.superseded_at is null
    join sonar.attempt a on a.attempt_id = f.attempt_id
    join sonar.scan s on s.scan_id = f.scan_id and s.deleting_at is null
    where f.workspace_id = ${workspaceId} and f.status = 'poisoned'
      and (${filter.scanId}::uuid is null or f.scan_id = ${filter.scanId}::uuid)
      and (${filter.after}::uuid is null or f.finalization_id > ${filter.after}::uuid)
    order by f.finalization_id limit ${filter.limit}`);
}

export interface PoisonState {
  scan_id: ScanId;
  status: 'due' | 'done' | 'poisoned' | 'superseded';
  superseded: boolean;
}

export async function findPoison(
  db: Db,
  workspaceId: string,
  finalizationId: string,
): Promise<PoisonState | undefined> {
  const [row] = await db.rows<PoisonState>(sql('poison.find')`
    select f.scan_id, f.status, t.superseded_at is not null as superseded
    from sonar.finalization f join sonar.task t on t.task_id = f.task_id
    where f.finalization_id = ${finalizationId} and f.workspace_id = ${workspaceId}`);
  return row;
}

export async function poisonedResult(
  db: Db,
  workspaceId: string,
  finalizationId: string,
): Promise<PoisonedRow | undefined> {
  const [row] = await db.rows<PoisonedRow>(sql('poison.show')`
    select f.finalization_id, f.scan_id, s.name as scan_name, f.task_id, t.step, t.item, f.attempt_id, a.worker_name,
           t.status as task_status, f.error, f.sample_file, f.sample, f.size, f.attempts, f.finished_at
    from sonar.finalization f
    join sonar.task t on t.task_id = f.task_id
    join sonar.attempt a on a.attempt_id = f.attempt_id
    join sonar.scan s on s.scan_id = f.scan_id and s.deleting_at is null
    where f.finalization_id = ${finalizationId} and f.workspace_id = ${workspaceId} and f.status = 'poisoned'`);
  return row;
}

/**
 * Due again with all tries before it, of one result or of all of a scan; its task waits for it. The tasks that failed
 * for nothing else are about to complete: their steps are in the answer, once a task.
 */
export function repairFinalizations(
  db: Db,
  scanId: ScanId,
  finalizationId: string | null,
  failureCode: string,
): Promise<{ step: string; completes: boolean }[]> {
  return db.rows(sql('poison.repair')`
    with due as (
      update sonar.finalization f
      set status = 'due', attempts = 0, available_at = clock_timestamp(), finished_at = null
      from sonar.task t
      where f.scan_id = ${scanId} and f.status = 'poisoned' and t.task_id = f.task_id and t.superseded_at is null
        and t.accepted_attempt_id = f.attempt_id
        and (${finalizationId}::uuid is null or f.finalization_id = ${finalizationId}::uuid)
      returning f.task_id, f.attempt_id)
    update sonar.task t set finalized = false
    from due d where t.task_id = d.task_id and t.accepted_attempt_id = d.attempt_id
    returning t.step, coalesce(t.failure_code = ${failureCode}, false) as completes`);
}
