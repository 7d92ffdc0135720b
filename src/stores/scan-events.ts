// What happened in a scan, told from the rows of what it happened to: nothing is written for it.
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { ScanEventKind } from '#sonar/contracts/task-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface ScanEventRow {
  at: string;
  /** `at` to the microsecond, as a text. */
  place: string;
  kind: ScanEventKind;
  id: string;
  task_id: TaskId | null;
  step: string | null;
  tag: string | null;
  worker_name: string | null;
  reason: string | null;
  exit_code: number | null;
  message: string | null;
}

/**
 * After a moment, oldest first. What is younger than `settleMs` is left for later: a transaction that is under way may
 * still add something before it. Each branch is a range of an index, in its order, and ends at the limit.
 */
export function scanEvents(
  db: Db,
  scanId: ScanId,
  page: { at: string; kind: string; id: string; settleMs: number; limit: number },
): Promise<ScanEventRow[]> {
  return db.rows(sql('scan_event.list')`
    with placed as (
      select a.created_at as at, 'placed' as kind, a.attempt_id as id, a.task_id, a.step, a.tag, a.worker_name,
             null as reason, null::integer as exit_code, null as message
      from sonar.attempt a
      where a.scan_id = ${scanId} and a.created_at >= ${page.at}::timestamptz
        and (a.created_at, 'placed', a.attempt_id) > (${page.at}::timestamptz, ${page.kind}::text, ${page.id}::uuid)
      order by a.created_at, a.attempt_id limit ${page.limit}),
    over as (
      select a.attempt_id, a.ended_at, a.task_id, a.step, a.tag, a.worker_name, a.end_reason,
             coalesce(a.release_reason, a.recovery_rule) as end_detail
      from sonar.attempt a
      where a.scan_id = ${scanId} and a.ended_at is not null and a.ended_at >= ${page.at}::timestamptz
        and (a.ended_at, 'ended', a.attempt_id) > (${page.at}::timestamptz, ${page.kind}::text, ${page.id}::uuid)
      order by a.ended_at, a.attempt_id limit ${page.limit}),
    ended as (
      select o.ended_at as at, 'ended' as kind, o.attempt_id as id, o.task_id, o.step, o.tag, o.worker_name,
             coalesce(r.outcome, o.end_reason) as reason, (r.body->>'exitCode')::integer as exit_code,
             coalesce(r.body->'failure'->>'message', o.end_detail) as message
      from over o left join sonar.result r on r.attempt_id = o.attempt_id),
    -- Without a result of their own: refused items, tasks that were lost or released too often.
    failed as (
      select t.finished_at as at, 'failed' as kind, t.task_id as id, t.task_id, t.step, t.tag, null as worker_name,
             t.failure_code as reason, t.exit_code, t.failure_message as message
      from sonar.task t
      where t.scan_id = ${scanId} and t.status = 'Failed' and t.accepted_attempt_id is null
        and t.finished_at >= ${page.at}::timestamptz
        and (t.finished_at, 'failed', t.task_id) > (${page.at}::timestamptz, ${page.kind}::text, ${page.id}::uuid)
      order by t.finished_at, t.task_id limit ${page.limit}),
    poisoned as (
      select f.finished_at as at, 'poisoned' as kind, f.finalization_id as id, f.task_id, t.step, null as tag,
             null as worker_name, null as reason, null::integer as exit_code, f.error as message
      from sonar.finalization f join sonar.task t on t.task_id = f.task_id
      where f.scan_id = ${scanId} and f.status = 'poisoned'
        and (f.finished_at, 'poisoned', f.finalization_id) > (${page.at}::timestamptz, ${page.kind}::text, ${page.id}::uuid)
      order by f.finished_at, f.finalization_id limit ${page.limit}),
    scan as (
      select e.at, e.kind, s.scan_id as id, null::uuid as task_id, null as step, null as tag, null as worker_name,
             e.reason, null::integer as exit_code, e.message
      from sonar.scan s cross join lateral (values
        (s.created_at, 'scan_started', null, s.name),
        (s.finished_at, 'scan_ended', s.status, s.reason)) as e (at, kind, reason, message)
      where s.scan_id = ${scanId}
        and (e.at, e.kind, s.scan_id) > (${page.at}::timestamptz, ${page.kind}::text, ${page.id}::uuid)),
    began as (
      select t.at, 'step_began' as kind, t.id, null::uuid as task_id, p.step, null as tag, null as worker_name,
             null as reason, null::integer as exit_code, null as message
      from sonar.scan_step p cross join lateral (
        select first.created_at as at, first.task_id as id
        from unnest(array['Pending', 'Published', 'Running', 'Completed', 'Failed', 'Cancelled']) as s (status)
        cross join lateral (
          select t.created_at, t.task_id from sonar.task t
          where t.scan_id = p.scan_id and t.step = p.step and t.status = s.status and t.superseded_at is null
          order by t.task_id limit 1) first
        order by first.task_id limit 1) t
      where p.scan_id = ${scanId}
        and (t.at, 'step_began', t.id) > (${page.at}::timestamptz, ${page.kind}::text, ${page.id}::uuid))
    select at, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as place, kind, id, task_id, step, tag,
           worker_name, reason, exit_code, message
    from (
      select * from placed union all select * from ended union all select * from failed
      union all select * from poisoned union all select * from scan union all select * from began) all_of_them
    where at < clock_timestamp() - ${page.settleMs} * interval '1 millisecond'
    order by at, kind, id limit ${page.limit}`);
}
