// The statements of a retry, all in the transaction that holds the scan's lock.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface RetryableStep {
  step: string;
  tasks: number;
  /** When the last of them finished. */
  until: string;
}

/** Failed and Cancelled tasks by step; of one task where an id is given. What was removed stays as it is. */
export function retryableSteps(db: Db, scanId: ScanId, taskId: string | null): Promise<RetryableStep[]> {
  return db.rows(sql('retry.steps')`
    select t.step, count(*) as tasks, max(t.finished_at)::text as until from sonar.task t
    join sonar.scan_step p on p.scan_id = t.scan_id and p.step = t.step and not p.removed
    where t.scan_id = ${scanId} and t.status in ('Failed', 'Cancelled') and t.superseded_at is null
      and (${taskId}::uuid is null or t.task_id = ${taskId}::uuid)
    group by t.step`);
}

/** Steps with finished tasks whose dependents are not made yet. */
export async function owedSteps(db: Db, scanId: ScanId): Promise<string[]> {
  const rows = await db.rows<{ step: string }>(sql('retry.owed_steps')`
    select p.step from sonar.scan_step p where p.scan_id = ${scanId} and exists (
      select from sonar.task t where t.scan_id = p.scan_id and t.step = p.step and t.plan_due and t.superseded_at is null)`);
  return rows.map((row) => row.step);
}

/** The tasks that were counted are to be tried again. */
export async function askRetry(db: Db, scanId: ScanId, steps: readonly RetryableStep[]): Promise<void> {
  await db.execute(sql('retry.ask')`
    update sonar.scan_step p set retry_until = greatest(p.retry_until, a.until)
    from unnest(${steps.map((row) => row.step)}::text[], ${steps.map((row) => row.until)}::timestamptz[]) as a (step, until)
    where p.scan_id = ${scanId} and p.step = a.step`);
}

/** Nobody is asked any more: what is still Failed or Cancelled stays so. */
export async function dropRetry(db: Db, scanId: ScanId): Promise<void> {
  await db.execute(sql('retry.drop')`
    update sonar.scan_step set retry_until = null where scan_id = ${scanId} and retry_until is not null`);
}

export interface ReopeningStep {
  step: string;
  retrying: boolean;
  voiding: boolean;
}

/** Where a retry or a repair is not carried out yet. */
export function reopeningSteps(db: Db, scanId: ScanId): Promise<ReopeningStep[]> {
  return db.rows(sql('retry.reopening')`
    select step, retry_until is not null as retrying, voiding from sonar.scan_step
    where scan_id = ${scanId} and (retry_until is not null or voiding)`);
}

/** Of steps whose work is done. */
export async function endReopening(db: Db, scanId: ScanId): Promise<void> {
  await db.execute(sql('retry.end_reopening')`
    update sonar.scan_step set retry_until = null, voiding = false
    where scan_id = ${scanId} and (retry_until is not null or voiding)`);
}

/**
 * A batch of a step's tasks, or one task, go back to Pending with all counters reset; what was accepted of them is
 * cleared, and what was to be read of it is read no more.
 */
export function retryTasks(
  db: Db,
  scanId: ScanId,
  step: string,
  taskId: string | null,
  limit: number,
): Promise<number> {
  return db.execute(sql('retry.tasks')`
    with asked as (
      select t.task_id from sonar.scan_step p
      join sonar.task t on t.scan_id = p.scan_id and t.step = p.step
      where p.scan_id = ${scanId} and p.step = ${step} and t.status in ('Failed', 'Cancelled')
        and t.superseded_at is null
        and case when ${taskId}::uuid is null then t.finished_at <= p.retry_until else t.task_id = ${taskId}::uuid end
      limit ${limit} for update of t),
    closed as (
      update sonar.finalization f
      set status = 'superseded', finished_at = clock_timestamp(), claim_token = null, claimed_by = null,
          claim_expires_at = null
      from asked a where f.task_id = a.task_id and f.status in ('due', 'poisoned'))
    update sonar.task t
    set status = 'Pending', attempt_id = null, tag = null, not_before = null, retries = 0, releases = 0, recoveries = 0,
        finished_at = null, started_at = null, published_at = null, failure_code = null, failure_message = null,
        outcome = null, exit_code = null, accepted_attempt_id = null, accepted_digest = null,
        accepted_sequence = null, finalized = true, plan_due = false
    from asked a where t.task_id = a.task_id`);
}

/**
 * Voids a batch of the steps' tasks; the open ones among them were cancelled before. Results of theirs that could not be
 * read count no more; those that were not read yet still reach the inventory.
 */
export function supersedeTasks(
  db: Db,
  scanId: ScanId,
  steps: readonly string[],
  limit: number,
): Promise<number> {
  return db.execute(sql('retry.supersede')`
    with void as (
      select task_id from sonar.task
      where scan_id = ${scanId} and step = any(${steps}::text[]) and superseded_at is null
        and status in ('Completed', 'Failed', 'Cancelled')
      limit ${limit} for update),
    closed as (
      update sonar.finalization f set status = 'superseded'
      from void v where f.task_id = v.task_id and f.status = 'poisoned')
    update sonar.task t set superseded_at = clock_timestamp(), plan_due = false
    from void v where t.task_id = v.task_id`);
}

/**
 * A batch of what planning has kept of the steps: staged rows, known values, streams, made files. It is all made anew
 * when they begin again.
 */
export async function dropPlanning(
  db: Db,
  scanId: ScanId,
  steps: readonly string[],
  limit: number,
): Promise<number> {
  return (
    (await db.execute(sql('retry.drop_staged_rows')`
      delete from sonar.expansion_row where (expansion_id, ordinal) in (
        select r.expansion_id, r.ordinal from sonar.expansion e join sonar.expansion_row r using (expansion_id)
        where e.scan_id = ${scanId} and e.step = any(${steps}::text[]) limit ${limit})`)) ||
    (await db.execute(sql('retry.drop_unique_items')`
      delete from sonar.unique_item where scan_id = ${scanId} and (step, value_sha256) in (
        select step, value_sha256 from sonar.unique_item
        where scan_id = ${scanId} and step = any(${steps}::text[]) limit ${limit})`)) ||
    (await db.execute(sql('retry.drop_expansions')`
      delete from sonar.expansion where expansion_id in (
        select expansion_id from sonar.expansion
        where scan_id = ${scanId} and step = any(${steps}::text[]) limit ${limit})`)) ||
    (await db.execute(sql('retry.drop_input_files')`
      delete from sonar.input_file where (owner_id, step, input) in (
        select owner_id, step, input from sonar.input_file
        where scan_id = ${scanId} and step = any(${steps}::text[]) limit ${limit})`))
  );
}

/** Open again; steps that are to begin anew lose what their first task had pinned, and are to lose all they have made. */
export async function reopenSteps(
  db: Db,
  scanId: ScanId,
  steps: readonly string[],
  anew: boolean,
): Promise<void> {
  await db.execute(sql('retry.reopen_steps')`
    update sonar.scan_step
    set state = 'open', note = null,
        begun = begun and not ${anew}::boolean, voiding = voiding or ${anew}::boolean,
        pins = case when ${anew}::boolean then null else pins end,
        sources_id = case when ${anew}::boolean then null else sources_id end,
        backfill_after = case when ${anew}::boolean then null else backfill_after end,
        refused = case when ${anew}::boolean then 0 else refused end
    where scan_id = ${scanId} and step = any(${steps}::text[]) and not removed`);
}

/** Open again, a generation on, in the given state; a scan that is open keeps its state and its generation. */
export async function reopenScan(db: Db, scanId: ScanId, to: 'Running' | 'Cancelling'): Promise<void> {
  await db.execute(sql('retry.reopen_scan')`
    update sonar.scan
    set status = ${to}, generation = generation + 1, finished_at = null,
        reason = case when ${to}::text = 'Cancelling' then reason end,
        failing = failing and ${to}::text = 'Cancelling'
    where scan_id = ${scanId} and status in ('Completed', 'CompletedWithErrors', 'Failed', 'Cancelled')`);
}
