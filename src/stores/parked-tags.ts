// Tags whose queue the broker refuses to declare: nothing is placed on them for a while, and what was goes back.
import type { ClaimToken } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export async function parkTags(db: Db, tags: ReadonlyMap<string, string>, forMs: number): Promise<void> {
  const sorted = [...tags].toSorted(([one], [other]) => (one < other ? -1 : 1));
  await db.execute(sql('parked_tag.park')`
    insert into sonar.parked_tag as p (tag, reason, until)
    select tag, reason, clock_timestamp() + ${forMs} * interval '1 millisecond'
    from unnest(${sorted.map(([tag]) => tag)}::text[], ${sorted.map(([, reason]) => reason)}::text[]) as t (tag, reason)
    on conflict (tag) do update set reason = excluded.reason, until = excluded.until`);
}

/** Of claimed deliveries: their tasks are Pending at once, for another of their tags, and the deliveries go. */
export async function returnParked(db: Db, token: ClaimToken, eventIds: readonly string[]): Promise<number> {
  const [row] = await db.rows<{ returned: number }>(sql('parked_tag.return')`
    with gone as (
      delete from sonar.outbox_delivery_queue
      where claim_token = ${token} and event_id = any(${eventIds}::uuid[]) returning event_id),
    current as (
      select t.task_id, t.attempt_id from gone g
      join sonar.outbox_events e on e.event_id = g.event_id
      join sonar.attempt a on a.attempt_id = e.attempt_id
      join sonar.task t on t.task_id = a.task_id and t.attempt_id = a.attempt_id and t.status = 'Published'
      order by t.task_id for update of t),
    back as (
      update sonar.task t set status = 'Pending', attempt_id = null, tag = null, not_before = null
      from current c where t.task_id = c.task_id and t.attempt_id = c.attempt_id and t.status = 'Published'
      returning c.attempt_id),
    locked as (
      select a.attempt_id from sonar.attempt a join back b on b.attempt_id = a.attempt_id
      where a.ended_at is null order by a.attempt_id for update of a),
    ended as (
      update sonar.attempt a
      set ended_at = clock_timestamp(), end_reason = 'recovered', recovery_rule = 'tag_parked'
      from locked l where a.attempt_id = l.attempt_id)
    select count(*) as returned from back`);
  return row?.returned ?? 0;
}

/** Those of the given tags that are parked at present, with the broker's reason. */
export async function parkedAmong(db: Db, tags: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.rows<{ tag: string; reason: string }>(sql('parked_tag.among')`
    select tag, reason from sonar.parked_tag where tag = any(${tags}::text[]) and until > clock_timestamp()`);
  return new Map(rows.map((row) => [row.tag, row.reason]));
}
