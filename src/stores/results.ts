// The accepting transaction's statements.
import type { AttemptId, FinalizationId, ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export async function acceptedDigest(db: Db, attemptId: AttemptId): Promise<string | null> {
  const [row] = await db.rows<{ digest: string }>(sql('result.digest')`
    select digest from sonar.result where attempt_id = ${attemptId}`);
  return row?.digest ?? null;
}

export async function insertResult(
  db: Db,
  result: {
    attemptId: AttemptId;
    workspaceId: string;
    taskId: TaskId;
    digest: string;
    outcome: string;
    body: unknown;
  },
): Promise<void> {
  await db.execute(sql('result.insert')`
    with accepted as (
      insert into sonar.result (attempt_id, workspace_id, task_id, digest, outcome, body, accepted_at)
      values (${result.attemptId}, ${result.workspaceId}, ${result.taskId}, ${result.digest}, ${result.outcome},
              ${JSON.stringify(result.body)}::jsonb, clock_timestamp())
      returning attempt_id)
    update sonar.attempt a set ended_at = clock_timestamp(), end_reason = 'result'
    from accepted where a.attempt_id = accepted.attempt_id`);
}

export async function insertOutputFiles(
  db: Db,
  result: { attemptId: AttemptId; workspaceId: string; taskId: TaskId; partial: boolean },
  files: readonly { output: string; path: string; objectKey: string; size: number; sha256: string }[],
): Promise<void> {
  await db.execute(sql('result.insert_files')`
    insert into sonar.output_file (attempt_id, workspace_id, task_id, output, path, object_key, size, sha256, partial)
    select ${result.attemptId}, ${result.workspaceId}, ${result.taskId}, f->>'output', f->>'path', f->>'objectKey',
           (f->>'size')::bigint, f->>'sha256', ${result.partial}
    from jsonb_array_elements(${JSON.stringify(files)}::jsonb) as f`);
}

/** Running → Completed or Failed, by attempt; what is to be read stays unfinalized. */
export function finishTask(
  db: Db,
  task: {
    taskId: TaskId;
    attemptId: AttemptId;
    status: 'Completed' | 'Failed';
    digest: string;
    outcome: string;
    exitCode: number | null;
    failure: { code: string; message: string } | null;
    finalized: boolean;
  },
): Promise<number> {
  return db.execute(sql('result.finish_task')`
    update sonar.task
    set status = ${task.status}, attempt_id = null, finished_at = clock_timestamp(),
        accepted_attempt_id = ${task.attemptId}, accepted_digest = ${task.digest},
        accepted_sequence = nextval('sonar.acceptance_sequence'), outcome = ${task.outcome}, exit_code = ${task.exitCode},
        failure_code = ${task.failure?.code ?? null}, failure_message = ${task.failure?.message ?? null},
        finalized = ${task.finalized}, plan_due = ${task.finalized && task.status === 'Completed'}
    where task_id = ${task.taskId} and attempt_id = ${task.attemptId} and status = 'Running'`);
}

/** Running → Pending with budget left; the attempt is over and the next one waits its turn. */
export function retryTask(
  db: Db,
  task: {
    taskId: TaskId;
    attemptId: AttemptId;
    delayMs: number;
    exitCode: number | null;
    outcome: string;
    /** Of the step's retries. */
    spent: 0 | 1;
  },
): Promise<number> {
  return db.execute(sql('result.retry_task')`
    update sonar.task
    set status = 'Pending', attempt_id = null, tag = null, retries = retries + ${task.spent}, outcome = ${task.outcome},
        exit_code = ${task.exitCode}, not_before = clock_timestamp() + ${task.delayMs} * interval '1 millisecond'
    where task_id = ${task.taskId} and attempt_id = ${task.attemptId} and status = 'Running'`);
}

export async function insertFinalization(
  db: Db,
  row: {
    finalizationId: FinalizationId;
    workspaceId: string;
    scanId: ScanId;
    taskId: TaskId;
    attemptId: AttemptId;
    digest: string;
    size: number;
  },
): Promise<void> {
  await db.execute(sql('result.insert_finalization')`
    insert into sonar.finalization (finalization_id, workspace_id, scan_id, task_id, attempt_id, digest, size, status)
    values (${row.finalizationId}, ${row.workspaceId}, ${row.scanId}, ${row.taskId}, ${row.attemptId}, ${row.digest},
            ${row.size}, 'due')
    on conflict (task_id, digest) do nothing`);
}
