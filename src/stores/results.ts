// The accepting transaction's statements. Each takes what several results need, so that callbacks which arrive together
// cost one transaction of a fixed number of statements.
import type { AttemptId, FinalizationId, ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

/** Digests of results that were accepted, by attempt. */
export async function acceptedDigests(
  db: Db,
  attemptIds: readonly AttemptId[],
): Promise<Map<AttemptId, string>> {
  const rows = await db.rows<{ attempt_id: AttemptId; digest: string }>(sql('result.digests')`
    select attempt_id, digest from sonar.result where attempt_id = any (${attemptIds}::uuid[])`);
  return new Map(rows.map((row) => [row.attempt_id, row.digest]));
}

export interface ResultOwner {
  attemptId: AttemptId;
  workspaceId: string;
  taskId: TaskId;
}

export async function insertResults(
  db: Db,
  results: readonly (ResultOwner & { digest: string; outcome: string; body: unknown })[],
): Promise<void> {
  await db.execute(sql('result.insert')`
    with accepted as (
      insert into sonar.result (attempt_id, workspace_id, task_id, digest, outcome, body, accepted_at)
      select "attemptId", "workspaceId", "taskId", digest, outcome, body, clock_timestamp()
      from jsonb_to_recordset(${JSON.stringify(results)}::jsonb)
        as r("attemptId" uuid, "workspaceId" text, "taskId" uuid, digest text, outcome text, body jsonb)
      returning attempt_id),
    locked as (
      select a.attempt_id from sonar.attempt a join accepted using (attempt_id) order by a.attempt_id for update of a)
    update sonar.attempt a set ended_at = clock_timestamp(), end_reason = 'result'
    from locked l where a.attempt_id = l.attempt_id`);
}

export async function insertOutputFiles(
  db: Db,
  files: readonly (ResultOwner & {
    output: string;
    path: string;
    objectKey: string;
    size: number;
    sha256: string;
    partial: boolean;
  })[],
): Promise<void> {
  await db.execute(sql('result.insert_files')`
    insert into sonar.output_file (attempt_id, workspace_id, task_id, output, path, object_key, size, sha256, partial)
    select "attemptId", "workspaceId", "taskId", output, path, "objectKey", size, sha256, partial
    from jsonb_to_recordset(${JSON.stringify(files)}::jsonb)
      as f("attemptId" uuid, "workspaceId" text, "taskId" uuid, output text, path text, "objectKey" text, size bigint,
           sha256 text, partial boolean)`);
}

/** Running → Completed or Failed, by attempt; what is to be read stays unfinalized. */
export function finishTasks(
  db: Db,
  tasks: readonly (ResultOwner & {
    status: 'Completed' | 'Failed';
    digest: string;
    outcome: string;
    exitCode: number | null;
    failureCode: string | null;
    failureMessage: string | null;
    finalized: boolean;
  })[],
): Promise<number> {
  return db.execute(sql('result.finish_tasks')`
    update sonar.task t
    set status = r.status, attempt_id = null, finished_at = clock_timestamp(),
        accepted_attempt_id = r."attemptId", accepted_digest = r.digest,
        accepted_sequence = nextval('sonar.acceptance_sequence'), outcome = r.outcome, exit_code = r."exitCode",
        failure_code = r."failureCode", failure_message = r."failureMessage",
        finalized = r.finalized, plan_due = r.finalized and r.status = 'Completed'
    from jsonb_to_recordset(${JSON.stringify(tasks)}::jsonb)
      as r("attemptId" uuid, "taskId" uuid, status text, digest text, outcome text, "exitCode" integer,
           "failureCode" text, "failureMessage" text, finalized boolean)
    where t.task_id = r."taskId" and t.attempt_id = r."attemptId" and t.status = 'Running'`);
}

/** Running → Pending with budget left; the attempt is over and the next one waits its turn. */
export function scheduleRetries(
  db: Db,
  tasks: readonly (ResultOwner & {
    delayMs: number;
    exitCode: number | null;
    outcome: string;
    /** Of the step's retries: 0 or 1. */
    spent: number;
  })[],
): Promise<number> {
  return db.execute(sql('result.schedule_retries')`
    update sonar.task t
    set status = 'Pending', attempt_id = null, tag = null, retries = t.retries + r.spent, outcome = r.outcome,
        exit_code = r."exitCode", not_before = clock_timestamp() + r."delayMs" * interval '1 millisecond'
    from jsonb_to_recordset(${JSON.stringify(tasks)}::jsonb)
      as r("attemptId" uuid, "taskId" uuid, "delayMs" bigint, "exitCode" integer, outcome text, spent integer)
    where t.task_id = r."taskId" and t.attempt_id = r."attemptId" and t.status = 'Running'`);
}

export async function insertFinalizations(
  db: Db,
  rows: readonly (ResultOwner & {
    finalizationId: FinalizationId;
    scanId: ScanId;
    digest: string;
    size: number;
  })[],
): Promise<void> {
  await db.execute(sql('result.insert_finalizations')`
    insert into sonar.finalization (finalization_id, workspace_id, scan_id, task_id, attempt_id, digest, size, status)
    select "finalizationId", "workspaceId", "scanId", "taskId", "attemptId", digest, size, 'due'
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as f("finalizationId" uuid, "workspaceId" text, "scanId" uuid, "taskId" uuid, "attemptId" uuid, digest text,
           size bigint)
    on conflict (task_id, digest) do nothing`);
}
