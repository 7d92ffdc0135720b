import type {
  AttemptId,
  ClaimToken,
  ExecutorId,
  FinalizationId,
  ScanId,
  TaskId,
} from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface FinalizationRow {
  finalization_id: FinalizationId;
  workspace_id: string;
  scan_id: ScanId;
  task_id: TaskId;
  attempt_id: AttemptId;
  step: string;
  definition_name: string;
  definition_revision: number;
  attempts: number;
  accepted_sequence: number;
  accepted_at: string;
}

// Any constant will do; all claimants take the same one.
const claimLock = 7_366_515;

/** The advisory lock, in a statement of its own before the count: two claimants never both see the last free claim. */
export async function lockClaims(db: Db): Promise<void> {
  await db.rows(sql('finalization.lock_claims')`select pg_advisory_xact_lock(${claimLock}::bigint)`);
}

/** Claims that are held and not expired, each a batch of rows under one token. */
export async function countClaims(db: Db): Promise<number> {
  const [row] = await db.rows<{ claims: number }>(sql('finalization.count_claims')`
    select count(distinct claim_token) as claims from sonar.finalization
    where status = 'due' and claim_token is not null and claim_expires_at > clock_timestamp()`);
  return row?.claims ?? 0;
}

/**
 * Leases due rows up to a count and a size, of the oldest one whatever its size; counts the attempt at the claim, so a
 * crash counts too.
 */
export function claimFinalizations(
  db: Db,
  claim: { token: ClaimToken; executorId: ExecutorId; leaseMs: number; maxRows: number; maxBytes: number },
): Promise<FinalizationRow[]> {
  return db.rows(sql('finalization.claim')`
    with candidates as (
      select finalization_id, size, attempts, available_at from sonar.finalization
      where status = 'due' and available_at <= clock_timestamp()
        and (claim_expires_at is null or claim_expires_at < clock_timestamp())
      order by available_at, finalization_id limit ${claim.maxRows} for update skip locked),
    bounded as (
      select finalization_id, size, attempts, sum(size) over by_age as total, row_number() over by_age as place,
             first_value(attempts) over by_age as first_attempts
      from candidates window by_age as (order by available_at, finalization_id)),
    claimed as (
      update sonar.finalization f
      set claim_token = ${claim.token}, claimed_by = ${claim.executorId}, attempts = f.attempts + 1,
          claim_expires_at = clock_timestamp() + ${claim.leaseMs} * interval '1 millisecond'
      from bounded b where f.finalization_id = b.finalization_id and (b.total <= ${claim.maxBytes} or b.total = b.size)
        -- What was claimed before goes alone: a result that kills its readers takes no neighbour with it.
        and (b.place = 1 or (b.first_attempts = 0 and b.attempts = 0))
      returning f.*)
    select c.finalization_id, c.workspace_id, c.scan_id, c.task_id, c.attempt_id, t.step, s.definition_name,
           a.definition_revision, c.attempts, t.accepted_sequence, r.accepted_at
    from claimed c
    join sonar.task t on t.task_id = c.task_id
    join sonar.attempt a on a.attempt_id = c.attempt_id
    join sonar.scan s on s.scan_id = c.scan_id
    join sonar.result r on r.attempt_id = c.attempt_id
    order by t.accepted_sequence`);
}

/**
 * @returns the rows that the claim still holds. In a transaction they stay as they are until it ends: who wants to close
 * one of them waits. Locked in one order, since a claim renews itself while it writes.
 */
export async function renewClaim(db: Db, token: ClaimToken, leaseMs: number): Promise<Set<FinalizationId>> {
  const rows = await db.rows<{ finalization_id: FinalizationId }>(sql('finalization.renew')`
    with held as (
      select finalization_id from sonar.finalization
      where claim_token = ${token} and status = 'due' and claim_expires_at > clock_timestamp()
      order by finalization_id for update)
    update sonar.finalization f set claim_expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    from held h where f.finalization_id = h.finalization_id
    returning f.finalization_id`);
  return new Set(rows.map((row) => row.finalization_id));
}

/**
 * Ends the row while the claim still holds and the attempt is the accepted one, in the transaction of
 * its effects: an empty answer means that the claim was lost, and nothing of it may commit.
 */
export async function finishFinalization(
  db: Db,
  claim: { token: ClaimToken; executorId: ExecutorId },
  row: {
    finalizationId: FinalizationId;
    records: number;
    badRecords: number;
    warnings: readonly string[];
    /** Of a task that failed only because its result could not be read: now it can. */
    failureCode: string;
  },
): Promise<boolean> {
  const [answer] = await db.rows<{ finished: boolean }>(sql('finalization.finish')`
    with finished as (
      update sonar.finalization
      set status = 'done', finished_at = clock_timestamp(), records = ${row.records}, bad_records = ${row.badRecords},
          warnings = ${row.warnings}, error = null, sample_file = null, sample = null, claim_token = null, claimed_by = null, claim_expires_at = null
      where finalization_id = ${row.finalizationId} and status = 'due' and claim_token = ${claim.token}
        and claimed_by = ${claim.executorId} and claim_expires_at > clock_timestamp()
      returning task_id, attempt_id),
    task as (
      update sonar.task t
      set finalized = true,
          status = case when t.failure_code = ${row.failureCode} then 'Completed' else t.status end,
          failure_code = nullif(t.failure_code, ${row.failureCode}),
          failure_message = case when t.failure_code = ${row.failureCode} then null else t.failure_message end,
          plan_due = (t.status = 'Completed' or t.failure_code = ${row.failureCode}) and t.superseded_at is null
      from finished f where t.task_id = f.task_id and t.accepted_attempt_id = f.attempt_id and not t.finalized)
    select exists (select from finished) as finished`);
  return answer?.finished ?? false;
}

/** What was being read when it failed; `text` is safe to print. */
export interface FaultSample {
  file: string;
  text: string | null;
}

/** Another try after a delay; only the claimant may say so. */
export function postponeFinalization(
  db: Db,
  token: ClaimToken,
  row: {
    finalizationId: FinalizationId;
    delayMs: number;
    error: string;
    sample: FaultSample | null;
    countsAttempt: boolean;
  },
): Promise<number> {
  return db.execute(sql('finalization.postpone')`
    update sonar.finalization
    set available_at = clock_timestamp() + ${row.delayMs} * interval '1 millisecond', error = ${row.error},
        sample_file = ${row.sample?.file ?? null}, sample = ${row.sample?.text ?? null},
        attempts = attempts - case when ${row.countsAttempt}::boolean then 0 else 1 end,
        claim_token = null, claimed_by = null, claim_expires_at = null
    where finalization_id = ${row.finalizationId} and status = 'due' and claim_token = ${token}`);
}

/**
 * Kept for inspection, with the sample of an earlier try where this one has none; its task fails, and nothing else
 * waits for it. Of a superseded task it is nobody's concern any more.
 */
export async function poisonFinalization(
  db: Db,
  token: ClaimToken,
  row: {
    finalizationId: FinalizationId;
    error: string;
    sample: FaultSample | null;
    failureCode: string;
  },
): Promise<number> {
  return db.execute(sql('finalization.poison')`
    with poisoned as (
      update sonar.finalization f
      set status = case when t.superseded_at is null then 'poisoned' else 'superseded' end,
          finished_at = clock_timestamp(), error = ${row.error},
          sample_file = coalesce(${row.sample?.file ?? null}::text, f.sample_file),
          sample = case when ${row.sample?.file ?? null}::text is null then f.sample else ${row.sample?.text ?? null}::text end,
          claim_token = null, claimed_by = null, claim_expires_at = null
      from sonar.task t
      where f.finalization_id = ${row.finalizationId} and f.status = 'due' and f.claim_token = ${token}
        and t.task_id = f.task_id
      returning f.task_id, f.attempt_id)
    update sonar.task t
    set status = 'Failed', finalized = true, plan_due = false,
        -- A command that failed by itself keeps its own reason.
        failure_code = case when t.status = 'Completed' then ${row.failureCode} else t.failure_code end,
        failure_message = case when t.status = 'Completed' then ${row.error} else t.failure_message end
    from poisoned p where t.task_id = p.task_id and t.accepted_attempt_id = p.attempt_id
      and t.status in ('Completed', 'Failed')`);
}

/** Whether anything could be claimed now. */
export async function finalizationIsDue(db: Db): Promise<boolean> {
  const [row] = await db.rows<{ due: boolean }>(sql('finalization.is_due')`
    select exists (select from sonar.finalization where status = 'due' and available_at <= clock_timestamp()
      and (claim_expires_at is null or claim_expires_at < clock_timestamp())) as due`);
  return row?.due ?? false;
}

/** The same of one scan. */
export async function finalizationIsDueOf(db: Db, scanId: ScanId): Promise<boolean> {
  const [row] = await db.rows<{ due: boolean }>(sql('finalization.is_due_of')`
    select exists (select from sonar.finalization where scan_id = ${scanId} and status = 'due'
      and available_at <= clock_timestamp() and (claim_expires_at is null or claim_expires_at < clock_timestamp())) as due`);
  return row?.due ?? false;
}

export async function unfinishedFinalizations(
  db: Db,
  scanId: ScanId,
): Promise<{ due: number; poisoned: number }> {
  const [row] = await db.rows<{ due: number; poisoned: number }>(sql('finalization.of_scan')`
    select count(*) filter (where status = 'due') as due, count(*) filter (where status = 'poisoned') as poisoned
    from sonar.finalization where scan_id = ${scanId} and status in ('due', 'poisoned')`);
  return row ?? { due: 0, poisoned: 0 };
}
