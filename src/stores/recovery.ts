// The statements of the recovery pass. Silence and age are given as milliseconds before the read, by the database's
// clock; what they mean is decided in domain/staleness.ts.
import type {
  AttemptId,
  ClaimToken,
  ExecutorId,
  IncarnationId,
  ScanId,
  TaskId,
} from '#sonar/contracts/ids.ts';
import type { RecoveryRule } from '#sonar/contracts/states.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

/**
 * Whether a recovery pass may find something of this scan: costs what is in flight of it, and nothing where the last
 * pass over all scans is younger than `everyMs`.
 */
export async function recoveryIsWanted(
  db: Db,
  scanId: ScanId,
  bounds: { aliveWithinMs: number; staleAfterMs: number; everyMs: number },
): Promise<boolean> {
  const { aliveWithinMs, staleAfterMs, everyMs } = bounds;
  const [row] = await db.rows<{ wanted: boolean }>(sql('recovery.wanted')`
    with judged as (
      select coalesce(r.passed_at < clock_timestamp() - ${everyMs} * interval '1 millisecond', true) as due,
             i.touched_at > clock_timestamp() - ${aliveWithinMs} * interval '1 millisecond'
               and i.open_since < clock_timestamp() - ${staleAfterMs} * interval '1 millisecond'
               and coalesce(r.held_until < clock_timestamp(), true) as absence
      from sonar.recovery r cross join sonar.pulse_intake i),
    alive as (
      select tags, free_pulses from sonar.worker_incarnation
      where replaced_at is null
        and coalesce(pulsed_at, registered_at) > clock_timestamp() - ${aliveWithinMs} * interval '1 millisecond')
    select exists (
      select from judged j join sonar.attempt a on a.scan_id = ${scanId} and a.ended_at is null and a.cancel_requested_at is null
      left join sonar.worker_incarnation w on w.incarnation_id = a.incarnation_id
      where j.due and (
        a.omitted_pulses > 1
        or w.replaced_at < clock_timestamp() - ${aliveWithinMs} * interval '1 millisecond'
        or a.started_at < clock_timestamp() - ${staleAfterMs} * interval '1 millisecond' and (w.incarnation_id is null or j.absence
           and coalesce(w.pulsed_at, w.registered_at) < clock_timestamp() - ${aliveWithinMs} * interval '1 millisecond')
        or a.started_at is null and a.confirmed_at < clock_timestamp() - ${staleAfterMs} * interval '1 millisecond'
           and (a.tag in (select unnest(tags) from alive where free_pulses > 1)
                or j.absence and a.tag not in (select unnest(tags) from alive)))) as wanted`);
  return row?.wanted ?? false;
}

/** One pass at a time, and none within `everyMs` of the last, whoever asks: all others get nothing, at once. */
export async function claimRecovery(
  db: Db,
  claim: { token: ClaimToken; executorId: ExecutorId; leaseMs: number; everyMs: number },
): Promise<boolean> {
  const claimed = await db.execute(sql('recovery.claim')`
    update sonar.recovery
    set claim_token = ${claim.token}, claimed_by = ${claim.executorId},
        claim_expires_at = clock_timestamp() + ${claim.leaseMs} * interval '1 millisecond'
    where singleton in (
      select singleton from sonar.recovery
      where (claim_token is null or claim_expires_at < clock_timestamp())
        and coalesce(passed_at < clock_timestamp() - ${claim.everyMs} * interval '1 millisecond', true)
      for update skip locked)`);
  return claimed === 1;
}

/** `passed`: the pass came to its end, so that the next one may wait. */
export async function releaseRecovery(db: Db, token: ClaimToken, passed: boolean): Promise<void> {
  await db.execute(sql('recovery.release')`
    update sonar.recovery
    set claim_token = null, claimed_by = null, claim_expires_at = null,
        passed_at = case when ${passed}::boolean then clock_timestamp() else passed_at end
    where claim_token = ${token}`);
}

export interface IntakeRow {
  open_ms: number;
  silent_ms: number;
}

export async function readIntake(db: Db): Promise<IntakeRow> {
  const [row] = await db.rows<IntakeRow>(sql('recovery.intake')`
    select (extract(epoch from clock_timestamp() - open_since) * 1000)::bigint as open_ms,
           (extract(epoch from clock_timestamp() - touched_at) * 1000)::bigint as silent_ms
    from sonar.pulse_intake`);
  return row as IntakeRow;
}

export interface FleetRow {
  worker_name: string;
  tags: string[];
  draining: boolean;
  free_pulses: number;
  silent_ms: number;
  registered_ms: number;
}

/** The newest incarnation of each name that was heard of within `heardWithinMs`. */
export function readFleet(db: Db, heardWithinMs: number): Promise<FleetRow[]> {
  return db.rows(sql('recovery.fleet')`
    select worker_name, tags, draining, free_pulses::integer as free_pulses,
           (extract(epoch from clock_timestamp() - coalesce(pulsed_at, registered_at)) * 1000)::bigint as silent_ms,
           (extract(epoch from clock_timestamp() - registered_at) * 1000)::bigint as registered_ms
    from sonar.worker_incarnation
    where replaced_at is null
      and coalesce(pulsed_at, registered_at) > clock_timestamp() - ${heardWithinMs} * interval '1 millisecond'`);
}

/** Begins or prolongs a hold; none given: one that is over ends, and one that is not goes on. */
export async function markHold(
  db: Db,
  hold: { endsInMs: number; note: string } | null,
): Promise<{ before: boolean; held: boolean }> {
  const [row] = await db.rows<{ before: boolean; held: boolean }>(sql('recovery.hold')`
    with before as (select held_until is not null as held from sonar.recovery),
    next as (
      select greatest(clock_timestamp() + ${hold?.endsInMs ?? null}::bigint * interval '1 millisecond',
                      case when held_until > clock_timestamp() then held_until end) as until,
             coalesce(${hold?.note ?? null}::text, held_note) as note
      from sonar.recovery)
    update sonar.recovery set held_until = next.until, held_note = case when next.until is not null then next.note end
    from before, next returning before.held as before, held_until is not null as held`);
  return row as { before: boolean; held: boolean };
}

export interface HoldRow {
  held_until: string;
  held_note: string;
}

/** What an operator is to know of a recovery that judges nobody absent at present. */
export async function findHold(db: Db): Promise<HoldRow | undefined> {
  const [row] = await db.rows<HoldRow>(sql('recovery.find_hold')`
    select held_until, held_note from sonar.recovery where held_until > clock_timestamp()`);
  return row;
}

/** Tags with messages that lie unread for `staleAfterMs`; goes from tag to tag by the index. */
export async function waitingTags(db: Db, staleAfterMs: number): Promise<string[]> {
  const rows = await db.rows<{ tag: string }>(sql('recovery.waiting_tags')`
    with recursive tags as (
      select min(tag) as tag from sonar.attempt
      where ended_at is null and started_at is null and confirmed_at is not null
      union all
      select (select min(a.tag) from sonar.attempt a
              where a.tag > t.tag and a.ended_at is null and a.started_at is null and a.confirmed_at is not null)
      from tags t where t.tag is not null)
    select tag from tags where exists (
      select from sonar.attempt a
      where a.tag = tags.tag and a.ended_at is null and a.started_at is null
        and a.confirmed_at < clock_timestamp() - ${staleAfterMs} * interval '1 millisecond')`);
  return rows.map((row) => row.tag);
}

export interface HolderRow {
  incarnation_id: IncarnationId;
  known: boolean;
  replaced_ms: number | null;
  silent_ms: number;
}

/** Incarnations that hold started attempts and have not pulsed for `silentMs`, were replaced or are not known. */
export function doubtfulHolders(db: Db, silentMs: number): Promise<HolderRow[]> {
  return db.rows(sql('recovery.holders')`
    with recursive holders as (
      (select incarnation_id from sonar.attempt
       where ended_at is null and incarnation_id is not null order by incarnation_id limit 1)
      union all
      select (select a.incarnation_id from sonar.attempt a
              where a.incarnation_id > h.incarnation_id and a.ended_at is null order by a.incarnation_id limit 1)
      from holders h where h.incarnation_id is not null)
    select h.incarnation_id, w.incarnation_id is not null as known,
           (extract(epoch from clock_timestamp() - w.replaced_at) * 1000)::bigint as replaced_ms,
           coalesce((extract(epoch from clock_timestamp() - coalesce(w.pulsed_at, w.registered_at)) * 1000)::bigint, 0) as silent_ms
    from holders h left join sonar.worker_incarnation w on w.incarnation_id = h.incarnation_id
    where h.incarnation_id is not null
      and (w.incarnation_id is null or w.replaced_at is not null
           or coalesce(w.pulsed_at, w.registered_at) < clock_timestamp() - ${silentMs} * interval '1 millisecond')`);
}

/**
 * Locks tasks that may be stale, passing over those that somebody else holds. A statement of its own: what is done with
 * them is decided by the next, which sees what was true when the lock was taken.
 */
export async function lockStale(
  db: Db,
  suspects: {
    /** Of these incarnations whatever they have started. */
    orphaned: readonly string[];
    /** Of these what they started before the age floor. */
    absent: readonly string[];
    tags: readonly string[];
    staleAfterMs: number;
  },
  limit: number,
): Promise<TaskId[]> {
  const rows = await db.rows<{ task_id: TaskId }>(sql('recovery.lock_stale')`
    with candidates as materialized (
      (select a.task_id, a.attempt_id from sonar.attempt a join sonar.scan s on s.scan_id = a.scan_id
       where a.ended_at is null and a.omitted_pulses > 1 and a.cancel_requested_at is null
         and s.status in ('Running', 'Paused') limit ${limit})
      union all
      (select a.task_id, a.attempt_id from sonar.attempt a join sonar.scan s on s.scan_id = a.scan_id
       where a.incarnation_id = any(${suspects.orphaned}::uuid[]) and a.ended_at is null
         and a.cancel_requested_at is null and s.status in ('Running', 'Paused') limit ${limit})
      union all
      (select a.task_id, a.attempt_id from sonar.attempt a join sonar.scan s on s.scan_id = a.scan_id
       where a.incarnation_id = any(${suspects.absent}::uuid[]) and a.ended_at is null
         and a.cancel_requested_at is null and s.status in ('Running', 'Paused')
         and a.started_at < clock_timestamp() - ${suspects.staleAfterMs} * interval '1 millisecond' limit ${limit})
      union all
      (select a.task_id, a.attempt_id from sonar.attempt a join sonar.scan s on s.scan_id = a.scan_id
       where a.tag = any(${suspects.tags}::text[]) and a.ended_at is null and a.started_at is null
         and a.confirmed_at < clock_timestamp() - ${suspects.staleAfterMs} * interval '1 millisecond'
         and s.status in ('Running', 'Paused') limit ${limit}))
    select t.task_id from candidates c join sonar.task t on t.task_id = c.task_id
    where t.attempt_id = c.attempt_id and t.status in ('Published', 'Running')
    order by t.task_id limit ${limit} for update of t skip locked`);
  return rows.map((row) => row.task_id);
}

export interface SuspectRow {
  task_id: TaskId;
  attempt_id: AttemptId;
  scan_id: ScanId;
  step: string;
  status: 'Published' | 'Running';
  recoveries: number;
  tag: string;
  worker_name: string | null;
  confirmed_ms: number | null;
  started_ms: number | null;
  omitted_pulses: number;
  holder_known: boolean;
  replaced_ms: number | null;
  silent_ms: number | null;
}

/** Of locked tasks: all that their rules ask for, as it is now. */
export function readSuspects(db: Db, taskIds: readonly TaskId[]): Promise<SuspectRow[]> {
  return db.rows(sql('recovery.suspects')`
    select t.task_id, a.attempt_id, t.scan_id, t.step, t.status, t.recoveries, a.tag, a.worker_name,
           (extract(epoch from clock_timestamp() - a.confirmed_at) * 1000)::bigint as confirmed_ms,
           (extract(epoch from clock_timestamp() - a.started_at) * 1000)::bigint as started_ms,
           a.omitted_pulses::integer as omitted_pulses, w.incarnation_id is not null as holder_known,
           (extract(epoch from clock_timestamp() - w.replaced_at) * 1000)::bigint as replaced_ms,
           (extract(epoch from clock_timestamp() - coalesce(w.pulsed_at, w.registered_at)) * 1000)::bigint as silent_ms
    from sonar.task t join sonar.attempt a on a.attempt_id = t.attempt_id
    left join sonar.worker_incarnation w on w.incarnation_id = a.incarnation_id
    where t.task_id = any(${taskIds}::uuid[]) and t.status in ('Published', 'Running')`);
}

export interface Takeback {
  taskId: TaskId;
  attemptId: AttemptId;
  rule: RecoveryRule;
  /** Lost for good: why. */
  failure: string | null;
}

/**
 * Back to Pending, or Failed: in one statement the current attempt and what was accepted of it are cleared, the attempt
 * ends, and what was to be told of it goes. A delivery that a publisher holds is dropped by the publisher.
 */
export async function takeBack(db: Db, failureCode: string, takebacks: readonly Takeback[]): Promise<number> {
  const [row] = await db.rows<{ taken: number }>(sql('recovery.take_back')`
    with judged as (
      select (d->>'taskId')::uuid as task_id, (d->>'attemptId')::uuid as attempt_id, d->>'rule' as rule, d->>'failure' as failure
      from jsonb_array_elements(${JSON.stringify(takebacks)}::jsonb) as d),
    back as (
      update sonar.task t
      set status = case when j.failure is null then 'Pending' else 'Failed' end, attempt_id = null, tag = null, not_before = null,
          recoveries = t.recoveries + case when t.status = 'Running' and j.failure is null then 1 else 0 end,
          accepted_attempt_id = null, accepted_digest = null, accepted_sequence = null,
          finished_at = case when j.failure is not null then clock_timestamp() end,
          failure_code = case when j.failure is not null then ${failureCode} end, failure_message = j.failure
      from judged j
      where t.task_id = j.task_id and t.attempt_id = j.attempt_id and t.status in ('Published', 'Running')
      returning j.attempt_id, j.rule),
    locked as (
      select a.attempt_id, b.rule from sonar.attempt a join back b on b.attempt_id = a.attempt_id
      where a.ended_at is null order by a.attempt_id for update of a),
    ended as (
      update sonar.attempt a set ended_at = clock_timestamp(), end_reason = 'recovered', recovery_rule = l.rule
      from locked l where a.attempt_id = l.attempt_id),
    closed as (
      delete from sonar.outbox_delivery_queue where event_id in (
        select q.event_id from back b
        join sonar.outbox_events e on e.attempt_id = b.attempt_id
        join sonar.outbox_delivery_queue q on q.event_id = e.event_id
        where q.claim_token is null or q.available_at <= clock_timestamp() for update of q skip locked))
    select count(*) as taken from back`);
  return row?.taken ?? 0;
}

/** How many attempts of each step were taken back: costs what was. */
export function recoveredOfScan(db: Db, scanId: ScanId): Promise<{ step: string; attempts: number }[]> {
  return db.rows(sql('recovery.of_scan')`
    select step, count(*) as attempts from sonar.attempt
    where scan_id = ${scanId} and end_reason = 'recovered' group by step`);
}
