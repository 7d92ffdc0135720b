// The statements of a retry, all in the transaction that holds the scan's lock.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

/** Steps that have Failed or Cancelled tasks; of one task where an id is given. What was removed stays as it is. */
export async function retryableSteps(db: Db, scanId: ScanId, taskId: string | null): Promise<string[]> {
  const rows = await db.rows<{ step: string }>(sql('retry.steps')`
    select distinct t.step from sonar.task t
    join sonar.scan_step p on p.scan_id = t.scan_id and p.step = t.step and not p.removed
    where t.scan_id = ${scanId} and t.status in ('Failed', 'Cancelled') and t.superseded_at is null
      and (${taskId}::uuid is null or t.task_id = ${taskId}::uuid)`);
  return rows.map((row) => row.step);
}

/** Steps with finished tasks whose dependents are not made yet. */
export async function owedSteps(db: Db, scanId: ScanId): Promise<string[]> {
  const rows = await db.rows<{ step: string }>(sql('retry.owed_steps')`
    select p.step from sonar.scan_step p where p.scan_id = ${scanId} and exists (
      select from sonar.task t where t.scan_id = p.scan_id and t.step = p.step and t.plan_due and t.superseded_at is null)`);
  return rows.map((row) => row.step);
}

/**
 * Failed and Cancelled tasks of the steps go back to Pending with all counters reset; what was accepted of them
 * is cleared, and what was to be read of it is read no more.
 */
export function retryTasks(
  db: Db,
  scanId: ScanId,
  steps: readonly string[],
  taskId: string | null,
): Promise<number> {
  return db.execute(sql('retry.tasks')`
    with closed as (
      update sonar.finalization f
      set status = 'superseded', finished_at = clock_timestamp(), claim_token = null, claimed_by = null,
          claim_expires_at = null
      from sonar.task t
      where f.task_id = t.task_id and f.status in ('due', 'poisoned') and t.scan_id = ${scanId}
        and t.step = any(${steps}::text[]) and t.status in ('Failed', 'Cancelled') and t.superseded_at is null
        and (${taskId}::uuid is null or t.task_id = ${taskId}::uuid)),
    asked_again as (
      delete from sonar.missing_program where scan_id = ${scanId} and step = any(${steps}::text[]))
    update sonar.task
    set status = 'Pending', attempt_id = null, tag = null, not_before = null, retries = 0, releases = 0, recoveries = 0,
        finished_at = null, started_at = null, published_at = null, failure_code = null, failure_message = null,
        outcome = null, exit_code = null, accepted_attempt_id = null, accepted_digest = null,
        accepted_sequence = null, finalized = true, plan_due = false
    where scan_id = ${scanId} and step = any(${steps}::text[]) and status in ('Failed', 'Cancelled')
      and superseded_at is null and (${taskId}::uuid is null or task_id = ${taskId}::uuid)`);
}

/**
 * Voids all tasks of the steps; the open ones among them were cancelled before. Results of theirs that could not be
 * read count no more; those that were not read yet still reach the inventory.
 */
export async function supersedeTasks(db: Db, scanId: ScanId, steps: readonly string[]): Promise<void> {
  await db.execute(sql('retry.supersede')`
    with closed as (
      update sonar.finalization f set status = 'superseded'
      from sonar.task t
      where f.scan_id = ${scanId} and f.status = 'poisoned' and t.task_id = f.task_id
        and t.step = any(${steps}::text[]) and t.superseded_at is null)
    update sonar.task set superseded_at = clock_timestamp(), plan_due = false
    where scan_id = ${scanId} and step = any(${steps}::text[]) and superseded_at is null`);
}

/** Their streams are read anew when the steps begin again. */
export async function dropExpansions(db: Db, scanId: ScanId, steps: readonly string[]): Promise<void> {
  await db.execute(sql('retry.drop_expansions')`
    delete from sonar.expansion where scan_id = ${scanId} and step = any(${steps}::text[])`);
}

/** Open again; steps that are to begin anew lose what their first task had pinned. */
export async function reopenSteps(
  db: Db,
  scanId: ScanId,
  steps: readonly string[],
  anew: boolean,
): Promise<void> {
  await db.execute(sql('retry.reopen_steps')`
    update sonar.scan_step
    set state = 'open', note = null,
        begun = begun and not ${anew}::boolean,
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
