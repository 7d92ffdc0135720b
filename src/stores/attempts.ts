// What the callbacks of an attempt read and write.
import type { StepPins } from '#sonar/contracts/definition.ts';
import type { AttemptId, IncarnationId, ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { TaskStatus } from '#sonar/contracts/states.ts';
import type { Release, Started } from '#sonar/contracts/worker-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface AttemptRow {
  attempt_id: AttemptId;
  workspace_id: string;
  scan_id: ScanId;
  task_id: TaskId;
  step: string;
  tag: string;
  key_id: string;
  definition_name: string;
  definition_revision: number;
  /** What the step's first task fixed for its scan. */
  pins: StepPins | null;
  worker_name: string | null;
  incarnation_id: IncarnationId | null;
  ended_at: string | null;
}

export async function findAttempt(db: Db, attemptId: string): Promise<AttemptRow | undefined> {
  const [row] = await db.rows<AttemptRow>(sql('attempt.find')`
    select a.attempt_id, a.workspace_id, a.scan_id, a.task_id, a.step, a.tag, a.key_id, s.definition_name,
           a.definition_revision, p.pins, a.worker_name, a.incarnation_id, a.ended_at
    from sonar.attempt a
    join sonar.scan s on s.scan_id = a.scan_id
    join sonar.scan_step p on p.scan_id = a.scan_id and p.step = a.step
    where a.attempt_id = ${attemptId}`);
  return row;
}

/**
 * Published → Running, compare-and-set by attempt; gives those that were Published. Like every statement that changes
 * several attempts it locks them in order of their ids: confirms and pulses hold no tasks, so nothing else keeps such
 * statements apart.
 */
export async function startAttempts(db: Db, started: readonly Started[]): Promise<Set<string>> {
  const rows = await db.rows<{ attempt_id: string }>(sql('attempt.start')`
    with given as (
      select * from jsonb_to_recordset(${JSON.stringify(started)}::jsonb)
        as g("attemptId" uuid, "deliveryId" uuid, worker text, "incarnationId" uuid, "pulseSequence" bigint)),
    first as (
      update sonar.task t set status = 'Running', started_at = clock_timestamp()
      from given g where t.attempt_id = g."attemptId" and t.status = 'Published' returning t.attempt_id),
    locked as (
      select a.attempt_id from sonar.attempt a join first f on f.attempt_id = a.attempt_id
      order by a.attempt_id for update of a),
    noted as (
      update sonar.attempt a
      set started_at = clock_timestamp(), delivery_id = g."deliveryId", worker_name = g.worker,
          incarnation_id = g."incarnationId", started_pulse_sequence = g."pulseSequence"
      from locked l join given g on g."attemptId" = l.attempt_id
      where a.attempt_id = l.attempt_id returning a.attempt_id)
    select attempt_id from noted`);
  return new Set(rows.map((row) => row.attempt_id));
}

/**
 * Whether that delivery is the one whose command runs. A statement of its own: one that has waited for another
 * call's compare-and-set sees the rows as they were before it.
 */
export async function deliveryRuns(db: Db, started: Started): Promise<boolean> {
  const [row] = await db.rows<{ runs: boolean }>(sql('attempt.delivery_runs')`
    select exists (
      select from sonar.attempt a join sonar.task t on t.attempt_id = a.attempt_id and t.status = 'Running'
      where a.attempt_id = ${started.attemptId} and a.delivery_id = ${started.deliveryId}
        and a.incarnation_id = ${started.incarnationId}) as runs`);
  return row?.runs ?? false;
}

export interface LockedTaskRow {
  task_id: TaskId;
  status: TaskStatus;
  attempt_id: AttemptId | null;
  retries: number;
  releases: number;
}

/** Waits for each, in order of the tasks. */
export async function lockTasks(db: Db, taskIds: readonly TaskId[]): Promise<Map<TaskId, LockedTaskRow>> {
  return byTask(
    await db.rows<LockedTaskRow>(sql('attempt.lock_tasks')`
      select task_id, status, attempt_id, retries, releases from sonar.task
      where task_id = any (${taskIds}::uuid[]) order by task_id for update`),
  );
}

/** Those that nobody holds: waits for none. */
export async function lockFreeTasks(db: Db, taskIds: readonly TaskId[]): Promise<Map<TaskId, LockedTaskRow>> {
  return byTask(
    await db.rows<LockedTaskRow>(sql('attempt.lock_free_tasks')`
      select task_id, status, attempt_id, retries, releases from sonar.task
      where task_id = any (${taskIds}::uuid[]) order by task_id for update skip locked`),
  );
}

const byTask = (rows: readonly LockedTaskRow[]) => new Map(rows.map((row) => [row.task_id, row]));

/** A command that nobody waits for any more is known to have ended. */
export async function endAttempt(
  db: Db,
  attemptId: AttemptId,
  reason: 'cancelled' | 'superseded',
): Promise<number> {
  return db.execute(sql('attempt.end')`
    update sonar.attempt set ended_at = clock_timestamp(), end_reason = ${reason}
    where attempt_id = ${attemptId} and ended_at is null`);
}

/** Back to Pending, or Failed when it was released too often; the current attempt is cleared either way. */
export async function releaseAttempt(
  db: Db,
  attemptId: AttemptId,
  release: { reason: Release['reason']; maxReleases: number; failureCode: string; delayMs: number },
): Promise<boolean> {
  const [row] = await db.rows<{ released: boolean }>(sql('attempt.release')`
    with released as (
      update sonar.task
      set releases = releases + 1, attempt_id = null, tag = null,
          status = case when releases + 1 >= ${release.maxReleases} then 'Failed' else 'Pending' end,
          finished_at = case when releases + 1 >= ${release.maxReleases} then clock_timestamp() end,
          failure_code = case when releases + 1 >= ${release.maxReleases} then ${release.failureCode} end,
          failure_message = case when releases + 1 >= ${release.maxReleases} then 'the task was released too often' end,
          not_before = clock_timestamp() + ${release.delayMs} * interval '1 millisecond'
      where attempt_id = ${attemptId} and status in ('Published', 'Running') returning 1),
    ended as (
      update sonar.attempt set ended_at = clock_timestamp(), end_reason = 'released', release_reason = ${release.reason}
      where attempt_id = ${attemptId} and ended_at is null and exists (select from released))
    select exists (select from released) as released`);
  return row?.released ?? false;
}

export interface SourceFileRow {
  source: number;
  path: string;
  object_key: string;
  size: number;
  sha256: string;
}

/** A source's file with the revision by which its rows are read. */
export interface ReadFileRow {
  source: number;
  path: string;
  object_key: string;
  size: number;
  sha256: string;
  definition_revision: number;
}

/** Files of one output of a task's parent, in order of path after `after`. */
export function parentFiles(
  db: Db,
  taskId: TaskId,
  output: string,
  after: string,
  limit: number,
): Promise<SourceFileRow[]> {
  return db.rows(sql('attempt.parent_files')`
    select 0 as source, f.path, f.object_key, f.size, f.sha256
    from sonar.task t
    join sonar.task p on p.task_id = t.parent_task_id
    join sonar.output_file f on f.attempt_id = p.accepted_attempt_id and f.output = ${output}
    where t.task_id = ${taskId} and f.path > ${after}
    order by f.path limit ${limit}`);
}

/** Files of one output of a task's pinned sources of one step, in their order after the given one. */
export function pinnedFiles(
  db: Db,
  taskId: TaskId,
  from: { step: string; output: string },
  after: { source: number; path: string },
  limit: number,
): Promise<SourceFileRow[]> {
  return db.rows(sql('attempt.pinned_files')`
    select p.ordinal as source, f.path, f.object_key, f.size, f.sha256
    from sonar.task t
    join sonar.pinned_source p on p.owner_id = t.sources_id
    join sonar.task source on source.task_id = p.task_id and source.step = ${from.step}
    join sonar.output_file f on f.attempt_id = p.attempt_id and f.output = ${from.output}
    where t.task_id = ${taskId} and p.ordinal >= ${after.source}::bigint
      and (p.ordinal, f.path) > (${after.source}::bigint, ${after.path}::text)
    order by p.ordinal, f.path limit ${limit}`);
}

/** The same files as a stream's sources, for an expansion over an All need. */
export function ownerFiles(
  db: Db,
  ownerId: string,
  from: { step: string; output: string },
  after: { source: number; path: string },
  limit: number,
): Promise<ReadFileRow[]> {
  return db.rows(sql('attempt.owner_files')`
    select p.ordinal as source, f.path, f.object_key, f.size, f.sha256, a.definition_revision
    from sonar.pinned_source p
    join sonar.attempt a on a.attempt_id = p.attempt_id
    join sonar.task source on source.task_id = p.task_id and source.step = ${from.step}
    join sonar.output_file f on f.attempt_id = p.attempt_id and f.output = ${from.output}
    where p.owner_id = ${ownerId} and p.ordinal >= ${after.source}::bigint
      and (p.ordinal, f.path) > (${after.source}::bigint, ${after.path}::text)
    order by p.ordinal, f.path limit ${limit}`);
}

/** Files that belong to a task itself, in order of path after `after`. */
export function taskFiles(
  db: Db,
  taskId: TaskId,
  input: string,
  after: string,
  limit: number,
): Promise<SourceFileRow[]> {
  return db.rows(sql('attempt.task_files')`
    select 0 as source, path, object_key, size, sha256 from sonar.task_file
    where task_id = ${taskId} and input = ${input} and path > ${after} order by path limit ${limit}`);
}

/**
 * The file that was made of rows for the task's owner: its parent, its sources or its scan. What is made for a step
 * that began anew is not for the tasks that it had before.
 */
export function madeFile(db: Db, taskId: TaskId, input: string): Promise<SourceFileRow[]> {
  return db.rows(sql('attempt.made_file')`
    select 0 as source, f.input as path, f.object_key, f.size, f.sha256
    from sonar.task t
    join sonar.input_file f on f.owner_id in (t.parent_task_id, t.sources_id, t.scan_id) and f.step = t.step
      and f.scan_id = t.scan_id
    where t.task_id = ${taskId} and t.superseded_at is null and f.input = ${input}`);
}

/** Files of the definition's revision that an attempt runs, in order of path after `after`. */
export function definitionFiles(
  db: Db,
  attempt: Pick<AttemptRow, 'workspace_id' | 'definition_name' | 'definition_revision'>,
  file: string,
  after: string,
  limit: number,
): Promise<SourceFileRow[]> {
  return db.rows(sql('attempt.definition_files')`
    select 0 as source, f.path, b.object_key, b.size, b.sha256
    from sonar.definition_file f join sonar.stored_file b on b.workspace_id = f.workspace_id and b.sha256 = f.sha256
    where f.workspace_id = ${attempt.workspace_id} and f.name = ${attempt.definition_name}
      and f.revision = ${attempt.definition_revision} and f.file = ${file} and f.path > ${after}
    order by f.path limit ${limit}`);
}

/** Files of one output of one task's accepted result. */
export function acceptedFiles(db: Db, taskId: TaskId, output: string): Promise<ReadFileRow[]> {
  return db.rows(sql('attempt.accepted_files')`
    select 0 as source, f.path, f.object_key, f.size, f.sha256, a.definition_revision
    from sonar.task t
    join sonar.attempt a on a.attempt_id = t.accepted_attempt_id
    join sonar.output_file f on f.attempt_id = t.accepted_attempt_id and f.output = ${output}
    where t.task_id = ${taskId} order by f.path`);
}

export interface OutputFileRow {
  output: string;
  path: string;
  object_key: string;
  size: number;
  sha256: string;
  partial: boolean;
}

/** Files of one output of one attempt, in order of path. */
export function outputFilesOf(db: Db, attemptId: AttemptId, output: string): Promise<OutputFileRow[]> {
  return db.rows(sql('attempt.output_files')`
    select output, path, object_key, size, sha256, partial from sonar.output_file
    where attempt_id = ${attemptId} and output = ${output} order by path`);
}
