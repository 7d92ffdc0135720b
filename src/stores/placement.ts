// The statements of one global placement pass.

import type { JsonValue, StepPins } from '#sonar/contracts/definition.ts';
import type {
  AttemptId,
  ClaimToken,
  ExecutorId,
  IncarnationId,
  ScanId,
  TaskId,
} from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

/** Waits for nobody: a sequence has no row lock. */
export async function requestPass(db: Db): Promise<void> {
  await db.rows(sql('placement.request')`select nextval('sonar.placement_request')`);
}

/** Takes the claim where nobody holds it; nothing when somebody does, at once and without waiting for the pass. */
export async function claimPass(
  db: Db,
  claim: { token: ClaimToken; executorId: ExecutorId; leaseMs: number },
): Promise<boolean> {
  const claimed = await db.execute(sql('placement.claim')`
    update sonar.placement
    set claim_token = ${claim.token}, claimed_by = ${claim.executorId},
        claim_expires_at = clock_timestamp() + ${claim.leaseMs} * interval '1 millisecond'
    where singleton in (
      select singleton from sonar.placement
      where claim_token is null or claim_expires_at < clock_timestamp() for update skip locked)`);
  return claimed === 1;
}

/**
 * The lock statement of a pass: holds the row until the pass commits, so passes never overlap, and
 * renews the lease. Nothing where the claim was lost.
 */
export async function lockPass(
  db: Db,
  claim: { token: ClaimToken; executorId: ExecutorId; leaseMs: number },
): Promise<{ requested: number; turns: number } | undefined> {
  const [row] = await db.rows<{ requested: number; turns: number }>(sql('placement.lock')`
    update sonar.placement
    set claim_expires_at = clock_timestamp() + ${claim.leaseMs} * interval '1 millisecond'
    where claim_token = ${claim.token} and claimed_by = ${claim.executorId} and claim_expires_at > clock_timestamp()
    returning (select last_value from sonar.placement_request) as requested, turns`);
  return row;
}

export async function markServed(db: Db, served: number): Promise<void> {
  await db.execute(sql('placement.served')`update sonar.placement set served = greatest(served, ${served})`);
}

/** Whose turn is next; all of it in the pass's transaction. */
export async function recordTurns(
  db: Db,
  turns: readonly {
    scanId: string;
    workspaceId: string;
    step: string;
    lastTurn: number;
    turnTaken: number;
  }[],
  lastTurn: number,
): Promise<void> {
  await db.execute(sql('placement.record_turns')`
    with counted as (update sonar.placement set turns = ${lastTurn})
    insert into sonar.placement_turn as p (scan_id, step, workspace_id, last_turn, turn_taken)
    select * from unnest(${turns.map((t) => t.scanId)}::uuid[], ${turns.map((t) => t.step)}::text[],
                         ${turns.map((t) => t.workspaceId)}::text[], ${turns.map((t) => t.lastTurn)}::bigint[],
                         ${turns.map((t) => t.turnTaken)}::integer[])
    on conflict (scan_id, step) do update set last_turn = excluded.last_turn, turn_taken = excluded.turn_taken`);
}

export async function releasePass(db: Db, token: ClaimToken): Promise<void> {
  await db.execute(sql('placement.release')`
    update sonar.placement set claim_token = null, claimed_by = null, claim_expires_at = null
    where claim_token = ${token}`);
}

/** Whether a pass would find anything to look at: one cheap question of an idle process. */
export async function passIsWanted(db: Db): Promise<boolean> {
  const [row] = await db.rows<{ wanted: boolean }>(sql('placement.wanted')`
    select (select last_value from sonar.placement_request) > served or exists (
      select from sonar.scan s
      join sonar.scan_step p on p.scan_id = s.scan_id and p.state = 'open' and not p.removed and not p.voiding
      cross join lateral (
        select from sonar.task t where t.scan_id = p.scan_id and t.step = p.step and t.status = 'Pending'
          and not t.inputs_due and (t.not_before is null or t.not_before <= clock_timestamp()) limit 1) due
      where s.status = 'Running') as wanted
    from sonar.placement`);
  return row?.wanted ?? false;
}

/** Alive, active, not draining: who may be given work; `tags` are those that are not parked. */
export function eligibleWorkers(
  db: Db,
  pulseWithinMs: number,
): Promise<{ incarnationId: IncarnationId; tags: string[]; parked: string[]; slots: number }[]> {
  return db.rows(sql('placement.workers')`
    select incarnation_id as "incarnationId", slots,
           array(select unnest(tags) except select unnest(p.parked)) as tags,
           array(select unnest(tags) intersect select unnest(p.parked)) as parked
    from sonar.worker_incarnation
    cross join (select array(select tag from sonar.parked_tag where until > clock_timestamp()) as parked) p
    where replaced_at is null and not draining
      and pulsed_at > clock_timestamp() - ${pulseWithinMs} * interval '1 millisecond'
    order by worker_name`);
}

export function inFlight(
  db: Db,
): Promise<{ tag: string; scan_id: ScanId; step: string; attempts: number }[]> {
  return db.rows(sql('placement.in_flight')`
    select tag, scan_id, step, count(*) as attempts from sonar.attempt
    where ended_at is null group by tag, scan_id, step`);
}

export interface PendingStepRow {
  scan_id: ScanId;
  workspace_id: string;
  definition_name: string;
  /** The newest that the scan has taken of the step. */
  definition_revision: number;
  pins: StepPins | null;
  step: string;
  missing_secrets: string[];
  /** Null: it has never stood in the row. */
  last_turn: number | null;
  turn_taken: number;
  pending: number;
}

/** Steps of Running scans with due work; `pending` is counted no further than `cap`. */
export function pendingSteps(db: Db, cap: number): Promise<PendingStepRow[]> {
  return db.rows(sql('placement.pending_steps')`
    select s.scan_id, s.workspace_id, s.definition_name, p.revision as definition_revision, p.pins, p.step, p.missing_secrets,
           w.last_turn, coalesce(w.turn_taken, 0) as turn_taken, due.pending
    from sonar.scan s
    join sonar.scan_step p on p.scan_id = s.scan_id and p.state = 'open' and not p.removed and not p.voiding
    cross join lateral (
      select count(*) as pending from (
        select from sonar.task t where t.scan_id = p.scan_id and t.step = p.step and t.status = 'Pending' and not t.inputs_due
          and (t.not_before is null or t.not_before <= clock_timestamp()) limit ${cap}) capped) due
    left join sonar.placement_turn w on w.scan_id = p.scan_id and w.step = p.step
    where s.status = 'Running' and due.pending > 0
    order by s.scan_id, p.ordinal`);
}

export interface PendingTaskRow {
  task_id: TaskId;
  item: JsonValue | null;
  item_ordinal: number | null;
  attempts: number;
}

/**
 * The next due tasks of a step, locked; those that another transaction holds are passed over. None where the scan does
 * not run any more, or is being paused: asked here and not only at the beginning of a pass, and held until its end.
 */
export function takePendingTasks(
  db: Db,
  scanId: ScanId,
  step: string,
  limit: number,
): Promise<PendingTaskRow[]> {
  return db.rows(sql('placement.take')`
    with running as (
      select from sonar.scan where scan_id = ${scanId} and status = 'Running' for key share skip locked)
    select task_id, item, item_ordinal, attempts from sonar.task
    where scan_id = ${scanId} and step = ${step} and status = 'Pending' and not inputs_due
      and (not_before is null or not_before <= clock_timestamp()) and exists (select from running)
    order by item_ordinal, task_id limit ${limit} for update skip locked`);
}

export interface NewDispatch {
  taskId: TaskId;
  attemptId: AttemptId;
  eventId: string;
  tag: string;
  number: number;
  /** Bytes of the payload as JSON. */
  bytes: number;
  payload: unknown;
}

/** One statement: Published, attempt, ledger and delivery row, or none of them. */
export async function dispatchTasks(
  db: Db,
  step: { scanId: ScanId; workspaceId: string; step: string; definitionRevision: number; keyId: string },
  dispatches: readonly NewDispatch[],
): Promise<number> {
  const [row] = await db.rows<{ dispatched: number }>(sql('placement.dispatch')`
    with new as (
      select (d->>'taskId')::uuid as task_id, (d->>'attemptId')::uuid as attempt_id, (d->>'eventId')::uuid as event_id,
             d->>'tag' as tag, (d->>'number')::integer as number, (d->>'bytes')::integer as bytes, d->'payload' as payload
      from jsonb_array_elements(${JSON.stringify(dispatches)}::jsonb) as d),
    placed as (
      update sonar.task t
      set status = 'Published', attempt_id = n.attempt_id, attempts = n.number, tag = n.tag, not_before = null,
          published_at = clock_timestamp(), started_at = null, definition_revision = ${step.definitionRevision}
      from new n where t.task_id = n.task_id and t.status = 'Pending'
      returning t.task_id),
    attempts as (
      insert into sonar.attempt (attempt_id, workspace_id, scan_id, task_id, step, tag, number, key_id, definition_revision)
      select n.attempt_id, ${step.workspaceId}, ${step.scanId}, n.task_id, ${step.step}, n.tag, n.number,
             ${step.keyId}, ${step.definitionRevision}
      from new n join placed using (task_id)),
    events as (
      insert into sonar.outbox_events (event_id, workspace_id, attempt_id, tag, payload)
      select n.event_id, ${step.workspaceId}, n.attempt_id, n.tag, n.payload from new n join placed using (task_id)),
    deliveries as (
      insert into sonar.outbox_delivery_queue (event_id, workspace_id, bytes)
      select n.event_id, ${step.workspaceId}, n.bytes from new n join placed using (task_id))
    select count(*) as dispatched from placed`);
  return row?.dispatched ?? 0;
}

/** Items that cannot become a command fail alone; the pass goes on. */
export async function refuseTasks(
  db: Db,
  code: string,
  refusals: readonly { taskId: TaskId; reason: string }[],
): Promise<number> {
  return db.execute(sql('placement.refuse')`
    update sonar.task t
    set status = 'Failed', finished_at = clock_timestamp(), failure_code = ${code}, failure_message = r.reason
    from unnest(${refusals.map((r) => r.taskId)}::uuid[], ${refusals.map((r) => r.reason)}::text[]) as r (task_id, reason)
    where t.task_id = r.task_id and t.status = 'Pending'`);
}
