// What people see of the attempts of a task.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { AttemptId, TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface AttemptViewRow {
  attempt_id: AttemptId;
  number: number;
  tag: string;
  worker_name: string | null;
  created_at: string;
  confirmed_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  end_reason: string | null;
  end_detail: string | null;
  accepted: boolean;
  outcome: string | null;
  /** contracts/worker-api.ts: Result, without its manifest. */
  body: JsonValue | null;
  files: number;
  finalization_id: string | null;
  finalization: string | null;
  finalization_error: string | null;
}

/** In the order in which they were made, after the given one. */
export function attemptsOfTask(
  db: Db,
  taskId: TaskId,
  after: string | null,
  limit: number,
): Promise<AttemptViewRow[]> {
  return db.rows(sql('attempt_view.of_task')`
    select a.attempt_id, a.number, a.tag, a.worker_name, a.created_at, a.confirmed_at, a.started_at, a.ended_at, a.end_reason,
           coalesce(a.release_reason, a.recovery_rule) as end_detail,
           coalesce(t.accepted_attempt_id = a.attempt_id, false) as accepted, r.outcome, r.body,
           (select count(*) from sonar.output_file o where o.attempt_id = a.attempt_id) as files,
           f.finalization_id, f.status as finalization, f.error as finalization_error
    from sonar.attempt a
    join sonar.task t on t.task_id = a.task_id
    left join sonar.result r on r.attempt_id = a.attempt_id
    left join sonar.finalization f on f.task_id = a.task_id and f.attempt_id = a.attempt_id
    where a.task_id = ${taskId} and (${after}::uuid is null or a.attempt_id > ${after}::uuid)
    order by a.attempt_id limit ${limit}`);
}

/** The attempt of that number, or the newest that has a result, or the newest. */
export async function attemptOfTask(
  db: Db,
  taskId: TaskId,
  number: number | null,
): Promise<AttemptViewRow | undefined> {
  const [row] = await db.rows<AttemptViewRow>(sql('attempt_view.one')`
    select a.attempt_id, a.number, a.tag, a.worker_name, a.created_at, a.confirmed_at, a.started_at, a.ended_at, a.end_reason,
           coalesce(a.release_reason, a.recovery_rule) as end_detail,
           coalesce(t.accepted_attempt_id = a.attempt_id, false) as accepted, r.outcome, r.body,
           (select count(*) from sonar.output_file o where o.attempt_id = a.attempt_id) as files,
           f.finalization_id, f.status as finalization, f.error as finalization_error
    from sonar.attempt a
    join sonar.task t on t.task_id = a.task_id
    left join sonar.result r on r.attempt_id = a.attempt_id
    left join sonar.finalization f on f.task_id = a.task_id and f.attempt_id = a.attempt_id
    where a.task_id = ${taskId} and (${number}::integer is null or a.number = ${number}::integer)
    order by (r.attempt_id is not null) desc, a.attempt_id desc limit 1`);
  return row;
}

export interface OutputViewRow {
  output: string;
  path: string;
  object_key: string;
  size: number;
  sha256: string;
  partial: boolean;
}

/** Files of an attempt by output and path, after the given one. */
export function outputsOfAttempt(
  db: Db,
  attemptId: AttemptId,
  filter: { output: string | null; afterOutput: string; afterPath: string; limit: number },
): Promise<OutputViewRow[]> {
  return db.rows(sql('attempt_view.outputs')`
    select output, path, object_key, size, sha256, partial from sonar.output_file
    where attempt_id = ${attemptId} and (${filter.output}::text is null or output = ${filter.output}::text)
      and (output, path) > (${filter.afterOutput}::text, ${filter.afterPath}::text)
    order by output, path limit ${filter.limit}`);
}
