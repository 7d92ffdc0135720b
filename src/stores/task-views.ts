import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { RecoveryRule, TaskStatus } from '#sonar/contracts/states.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface TaskViewRow {
  task_id: TaskId;
  scan_id: ScanId;
  step: string;
  parent_task_id: TaskId | null;
  item: JsonValue | null;
  status: TaskStatus;
  no_work: boolean;
  tag: string | null;
  worker_name: string | null;
  attempts: number;
  releases: number;
  exit_code: number | null;
  failure_code: string | null;
  failure_message: string | null;
  warnings: string[] | null;
  records: number | null;
  bad_records: number | null;
  published_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  recoveries: number;
  /** Of the newest attempt that it was taken back from. */
  recovery_rule: RecoveryRule | null;
  lost_by: string | null;
  lost_at: string | null;
}

/** In order of making, after the given id; superseded tasks are left out. */
export function listTasks(
  db: Db,
  scanId: ScanId,
  filter: { step: string | null; status: TaskStatus | null; after: string | null; limit: number },
): Promise<TaskViewRow[]> {
  return db.rows(sql('task_view.list')`
    select t.task_id, t.scan_id, t.step, t.parent_task_id, t.item, t.status, t.no_work, t.tag, a.worker_name, t.attempts, t.releases,
           t.exit_code, t.failure_code, t.failure_message, f.warnings, f.records, f.bad_records,
           t.published_at, t.started_at, t.finished_at, t.recoveries, l.recovery_rule, l.lost_by, l.lost_at
    from sonar.task t
    left join sonar.attempt a on a.attempt_id = coalesce(t.attempt_id, t.accepted_attempt_id)
    left join sonar.finalization f on f.task_id = t.task_id and f.digest = t.accepted_digest
    left join lateral (
      select x.recovery_rule, x.worker_name as lost_by, x.ended_at as lost_at from sonar.attempt x
      where x.task_id = t.task_id and x.end_reason = 'recovered' order by x.number desc limit 1) l on true
    where t.scan_id = ${scanId} and t.superseded_at is null
      and (${filter.step}::text is null or t.step = ${filter.step}::text)
      and (${filter.status}::text is null or t.status = ${filter.status}::text)
      and (${filter.after}::uuid is null or t.task_id > ${filter.after}::uuid)
    order by t.task_id limit ${filter.limit}`);
}

export async function findTask(
  db: Db,
  workspaceId: string,
  taskId: string,
): Promise<TaskViewRow | undefined> {
  const [row] = await db.rows<TaskViewRow>(sql('task_view.find')`
    select t.task_id, t.scan_id, t.step, t.parent_task_id, t.item, t.status, t.no_work, t.tag, a.worker_name, t.attempts, t.releases,
           t.exit_code, t.failure_code, t.failure_message, f.warnings, f.records, f.bad_records,
           t.published_at, t.started_at, t.finished_at, t.recoveries, l.recovery_rule, l.lost_by, l.lost_at
    from sonar.task t
    left join sonar.attempt a on a.attempt_id = coalesce(t.attempt_id, t.accepted_attempt_id)
    left join sonar.finalization f on f.task_id = t.task_id and f.digest = t.accepted_digest
    left join lateral (
      select x.recovery_rule, x.worker_name as lost_by, x.ended_at as lost_at from sonar.attempt x
      where x.task_id = t.task_id and x.end_reason = 'recovered' order by x.number desc limit 1) l on true
    where t.task_id = ${taskId} and t.workspace_id = ${workspaceId}
      and not exists (select from sonar.scan s where s.scan_id = t.scan_id and s.deleting_at is not null)`);
  return row;
}
