import type { Dispatch } from '#sonar/contracts/dispatch-message.ts';
import type { AttemptId, ClaimToken, ExecutorId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface DeliveryRow {
  event_id: string;
  attempt_id: AttemptId;
  key_id: string;
  tag: string;
  payload: Dispatch;
  attempts: number;
  /** Whether the attempt is still its task's; the event of any other is dropped. */
  current: boolean;
}

/** Claims what is available: only the token that is set here deletes or reschedules these rows. */
export function claimDeliveries(
  db: Db,
  claim: { token: ClaimToken; executorId: ExecutorId; leaseMs: number; limit: number; maxBytes: number },
): Promise<DeliveryRow[]> {
  return db.rows(sql('outbox.claim')`
    with available as (
      select event_id, bytes, available_at from sonar.outbox_delivery_queue
      where available_at <= clock_timestamp() order by available_at limit ${claim.limit} for update skip locked),
    bounded as (
      select event_id, sum(bytes) over (order by available_at, event_id) - bytes as before from available),
    claimed as (
      update sonar.outbox_delivery_queue q
      set claim_token = ${claim.token}, claimed_by = ${claim.executorId}, attempts = q.attempts + 1,
          available_at = clock_timestamp() + ${claim.leaseMs} * interval '1 millisecond'
      from bounded b where q.event_id = b.event_id and b.before < ${claim.maxBytes} returning q.event_id, q.attempts)
    select c.event_id, e.attempt_id, a.key_id, e.tag, e.payload, c.attempts, t.attempt_id is not null as current
    from claimed c
    join sonar.outbox_events e on e.event_id = c.event_id
    join sonar.attempt a on a.attempt_id = e.attempt_id
    left join sonar.task t on t.task_id = a.task_id and t.attempt_id = e.attempt_id and t.status = 'Published'
    order by c.event_id`);
}

/** Published and confirmed: gone from the queue, marked in the ledger. */
export async function finishDeliveries(
  db: Db,
  token: ClaimToken,
  eventIds: readonly string[],
  published: boolean,
): Promise<number> {
  const [row] = await db.rows<{ finished: number }>(sql('outbox.finish')`
    with finished as (
      delete from sonar.outbox_delivery_queue
      where claim_token = ${token} and event_id = any(${eventIds}::uuid[]) returning event_id),
    ledger as (
      update sonar.outbox_events e set published_at = case when ${published}::boolean then clock_timestamp() end
      from finished f where e.event_id = f.event_id returning e.attempt_id),
    locked as (
      select a.attempt_id from sonar.attempt a join ledger l on l.attempt_id = a.attempt_id
      where ${published}::boolean order by a.attempt_id for update of a),
    confirmed as (
      update sonar.attempt a set confirmed_at = clock_timestamp()
      from locked l where a.attempt_id = l.attempt_id)
    select count(*) as finished from finished`);
  return row?.finished ?? 0;
}

export function rescheduleDeliveries(
  db: Db,
  token: ClaimToken,
  deliveries: readonly { eventId: string; delayMs: number; error: string }[],
): Promise<number> {
  return db.execute(sql('outbox.reschedule')`
    update sonar.outbox_delivery_queue q
    set available_at = clock_timestamp() + d.delay_ms * interval '1 millisecond', last_error = d.error,
        claim_token = null, claimed_by = null
    from unnest(${deliveries.map((d) => d.eventId)}::uuid[], ${deliveries.map((d) => d.delayMs)}::integer[],
                ${deliveries.map((d) => d.error)}::text[]) as d (event_id, delay_ms, error)
    where q.event_id = d.event_id and q.claim_token = ${token}`);
}

/** The ledger is kept `keepMs`; events still in the queue stay. */
export function purgeLedger(db: Db, keepMs: number, limit: number): Promise<number> {
  return db.execute(sql('outbox.purge')`
    delete from sonar.outbox_events where event_id in (
      select e.event_id from sonar.outbox_events e
      where e.created_at < clock_timestamp() - ${keepMs} * interval '1 millisecond'
        and not exists (select from sonar.outbox_delivery_queue q where q.event_id = e.event_id)
      order by e.created_at limit ${limit})`);
}

/** The event's task is Pending again, if its attempt is still to be started. */
export async function returnUndelivered(db: Db, eventId: string, delayMs: number): Promise<boolean> {
  const [row] = await db.rows<{ returned: boolean }>(sql('outbox.return_undelivered')`
    with event as (
      select attempt_id from sonar.outbox_events where event_id = ${eventId}),
    back as (
      update sonar.task t
      set status = 'Pending', attempt_id = null, tag = null,
          not_before = clock_timestamp() + ${delayMs} * interval '1 millisecond'
      from event e where t.attempt_id = e.attempt_id and t.status = 'Published'
      returning e.attempt_id),
    ended as (
      update sonar.attempt a set ended_at = clock_timestamp(), end_reason = 'recovered', recovery_rule = 'undelivered'
      from back b where a.attempt_id = b.attempt_id and a.ended_at is null)
    select exists (select from back) as returned`);
  return row?.returned ?? false;
}
