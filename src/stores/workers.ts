import type { AttemptId, IncarnationId, ScanId } from '#sonar/contracts/ids.ts';
import type { Pulse, Registration } from '#sonar/contracts/worker-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface IncarnationRow {
  incarnation_id: IncarnationId;
  workspace_id: string;
  worker_name: string;
  key_id: string;
  tags: string[];
  replaced: boolean;
  /** Some step's program is missing there. */
  lacking: boolean;
}

/** In a statement of its own, first: two registrations of one name take turns until they commit. */
export async function lockWorkerName(db: Db, workspaceId: string, name: string): Promise<void> {
  await db.rows(sql('worker.lock_name')`
    select pg_advisory_xact_lock(hashtextextended(${`${workspaceId}/${name}`}::text, 0))`);
}

/** The older incarnations of the name are replaced first: of two machines with one name the newer wins. */
export async function replaceIncarnations(db: Db, workspaceId: string, name: string): Promise<number> {
  return db.execute(sql('worker.replace')`
    update sonar.worker_incarnation set replaced_at = clock_timestamp()
    where workspace_id = ${workspaceId} and worker_name = ${name} and replaced_at is null`);
}

/** False where the incarnation's id is taken. */
export async function insertIncarnation(
  db: Db,
  workspaceId: string,
  keyId: string,
  worker: Registration,
): Promise<boolean> {
  const inserted = await db.execute(sql('worker.insert')`
    insert into sonar.worker_incarnation (incarnation_id, workspace_id, worker_name, key_id, location, image, tags, slots)
    values (${worker.incarnationId}, ${workspaceId}, ${worker.name}, ${keyId}, ${worker.location}, ${worker.image},
            ${worker.tags}, ${worker.slots})
    on conflict (incarnation_id) do nothing`);
  return inserted === 1;
}

export async function findIncarnation(db: Db, incarnationId: string): Promise<IncarnationRow | undefined> {
  const [row] = await db.rows<IncarnationRow>(sql('worker.find')`
    select incarnation_id, workspace_id, worker_name, key_id, tags, replaced_at is not null as replaced,
           exists (select from sonar.missing_program m where m.incarnation_id = w.incarnation_id) as lacking
    from sonar.worker_incarnation w where incarnation_id = ${incarnationId}`);
  return row;
}

/** Takes a pulse that is newer than the last; 0 rows: it is not, or the incarnation was replaced. */
export function recordPulse(db: Db, pulse: Pulse): Promise<number> {
  return db.execute(sql('worker.pulse')`
    update sonar.worker_incarnation
    set pulsed_at = clock_timestamp(), pulse_sequence = ${pulse.sequence}, location = ${pulse.location},
        image = ${pulse.image}, tags = ${pulse.tags}, slots = ${pulse.slots}, free_slots = ${pulse.freeSlots},
        draining = ${pulse.draining}, attempts = ${pulse.attempts}::uuid[],
        free_pulses = case when ${pulse.freeSlots} > 0 and not ${pulse.draining}::boolean then least(free_pulses + 1, 2) else 0 end
    where incarnation_id = ${pulse.incarnationId} and pulse_sequence < ${pulse.sequence} and replaced_at is null`);
}

/**
 * A pulse was taken: the intake is open, and has been since it was last found shut for `gapMs`. At most one write in
 * `everyMs`, and nobody waits for another's.
 */
export async function touchIntake(db: Db, everyMs: number, gapMs: number): Promise<void> {
  await db.execute(sql('worker.touch_intake')`
    update sonar.pulse_intake
    set open_since = case when touched_at < clock_timestamp() - ${gapMs} * interval '1 millisecond'
                          then clock_timestamp() else open_since end,
        touched_at = clock_timestamp()
    where singleton in (
      select singleton from sonar.pulse_intake
      where touched_at < clock_timestamp() - ${everyMs} * interval '1 millisecond' for update skip locked)`);
}

/**
 * Started attempts that a later pulse does not list: counted, for a second such pulse means that the worker has lost
 * them. One that is listed again was never lost.
 */
export async function noteOmittedAttempts(db: Db, pulse: Pulse): Promise<void> {
  await db.execute(sql('worker.note_omitted')`
    update sonar.attempt a
    set omitted_pulses = case when a.attempt_id = any(${pulse.attempts}::uuid[]) then 0 else least(omitted_pulses + 1, 2) end
    where a.attempt_id in (
      select attempt_id from sonar.attempt
      where incarnation_id = ${pulse.incarnationId} and ended_at is null and cancel_requested_at is null
        and started_pulse_sequence < ${pulse.sequence}
        and (omitted_pulses > 0 or not attempt_id = any(${pulse.attempts}::uuid[]))
        and not (omitted_pulses > 1 and not attempt_id = any(${pulse.attempts}::uuid[]))
      for update skip locked)`);
}

/** Of the attempts in hand: which are to be ended, and which are no longer anybody's. */
export function judgeAttempts(
  db: Db,
  attempts: readonly string[],
): Promise<{ attempt_id: AttemptId; cancel: boolean; superseded: boolean }[]> {
  return db.rows(sql('worker.judge')`
    select a.attempt_id, a.cancel_requested_at is not null and a.ended_at is null as cancel,
           a.ended_at is not null and a.end_reason <> 'result' as superseded
    from sonar.attempt a where a.attempt_id = any(${attempts}::uuid[])
      and (a.cancel_requested_at is not null or a.ended_at is not null)`);
}

/** A cancelled attempt that a later pulse does not list has ended. @returns the scans of those. */
export async function endOmittedAttempts(db: Db, pulse: Pulse): Promise<ScanId[]> {
  const rows = await db.rows<{ scan_id: ScanId }>(sql('worker.end_omitted')`
    with locked as (
      select attempt_id from sonar.attempt
      where incarnation_id = ${pulse.incarnationId} and ended_at is null and cancel_requested_at is not null
        and started_pulse_sequence < ${pulse.sequence} and not attempt_id = any(${pulse.attempts}::uuid[])
      order by attempt_id for update)
    update sonar.attempt a set ended_at = clock_timestamp(), end_reason = 'cancelled'
    from locked l where a.attempt_id = l.attempt_id
    returning a.scan_id`);
  return [...new Set(rows.map((row) => row.scan_id))];
}

export interface AbandonedBounds {
  /** Since the command was asked to end. */
  graceMs: number;
  /** Without a pulse: absent, if intake was open for `intakeMs` and somebody was heard within `gapMs`. */
  absentMs: number;
  gapMs: number;
  intakeMs: number;
}

/**
 * Cancelled attempts whose worker is absent or was replaced, or that were asked to end long ago, count no longer.
 * @param scanId of this scan; null: of all, a bounded number at a time
 */
export function endAbandonedAttempts(
  db: Db,
  scanId: string | null,
  bounds: AbandonedBounds,
): Promise<number> {
  return db.execute(sql('worker.end_abandoned')`
    update sonar.attempt a set ended_at = clock_timestamp(), end_reason = 'cancelled'
    where a.attempt_id in (
      select x.attempt_id from sonar.pulse_intake i
      cross join sonar.attempt x left join sonar.worker_incarnation w on w.incarnation_id = x.incarnation_id
      where (${scanId}::uuid is null or x.scan_id = ${scanId}::uuid) and x.ended_at is null and x.cancel_requested_at is not null
        and (w.incarnation_id is null
             or x.cancel_requested_at < clock_timestamp() - ${bounds.graceMs} * interval '1 millisecond'
             or w.replaced_at is not null
             or coalesce(w.pulsed_at, w.registered_at) < clock_timestamp() - ${bounds.absentMs} * interval '1 millisecond'
                and i.touched_at > clock_timestamp() - ${bounds.gapMs} * interval '1 millisecond'
                and i.open_since < clock_timestamp() - ${bounds.intakeMs} * interval '1 millisecond')
      limit 5000 for update of x skip locked)`);
}

/** Incarnations that nobody has heard of for `keepMs` and that hold nothing any more. */
export function retireIncarnations(db: Db, keepMs: number, limit: number): Promise<number> {
  return db.execute(sql('worker.retire')`
    delete from sonar.worker_incarnation where incarnation_id in (
      select w.incarnation_id from sonar.worker_incarnation w
      where coalesce(w.pulsed_at, w.registered_at) < clock_timestamp() - ${keepMs} * interval '1 millisecond'
        and not exists (select from sonar.attempt a where a.incarnation_id = w.incarnation_id and a.ended_at is null)
      limit ${limit} for update skip locked)`);
}

export interface WorkerRow {
  worker_name: string;
  incarnation_id: IncarnationId;
  location: string;
  image: string;
  tags: string[];
  slots: number;
  free_slots: number;
  state: 'alive' | 'draining' | 'absent' | 'replaced';
  attempts: number;
  registered_at: string;
  pulsed_at: string | null;
}

/** The newest incarnation of each name that was heard of within `heardWithinMs`, by name after `after`. */
export function listWorkers(
  db: Db,
  workspaceId: string,
  filter: { after: string; limit: number; aliveWithinMs: number; heardWithinMs: number },
): Promise<WorkerRow[]> {
  return db.rows(sql('worker.list')`
    select worker_name, incarnation_id, location, image, tags, slots, free_slots,
      case when coalesce(pulsed_at, registered_at) <= clock_timestamp() - ${filter.aliveWithinMs} * interval '1 millisecond' then 'absent'
           when draining then 'draining' else 'alive' end as state,
      cardinality(attempts) as attempts, registered_at, pulsed_at
    from sonar.worker_incarnation
    where workspace_id = ${workspaceId} and replaced_at is null and worker_name > ${filter.after}
      and coalesce(pulsed_at, registered_at) > clock_timestamp() - ${filter.heardWithinMs} * interval '1 millisecond'
    order by worker_name limit ${filter.limit}`);
}
