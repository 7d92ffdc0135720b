// Planning's statements: make tasks, find what is due, ask what is open.
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

interface ScanKey {
  scanId: ScanId;
  workspaceId: string;
}

/** A task without an item: of a root step, of an All step, or a no-work outcome. */
export function insertTask(
  db: Db,
  scan: ScanKey,
  task: {
    taskId: TaskId;
    step: string;
    parentTaskId: TaskId | null;
    sourcesId: string | null;
    definitionRevision: number;
    noWork: boolean;
    /** Files that it reads are not made yet; never of a no-work outcome. */
    inputsDue: boolean;
  },
): Promise<number> {
  return db.execute(sql('task.insert')`
    insert into sonar.task (task_id, workspace_id, scan_id, step, parent_task_id, sources_id, status, no_work,
                            plan_due, finished_at, definition_revision, inputs_due)
    select ${task.taskId}, ${scan.workspaceId}, ${scan.scanId}, ${task.step}, ${task.parentTaskId}::uuid,
           ${task.sourcesId}::uuid, case when no_work then 'Completed' else 'Pending' end, no_work, no_work,
           case when no_work then clock_timestamp() end, ${task.definitionRevision}, ${task.inputsDue}::boolean and not no_work
    from (values (${task.noWork}::boolean)) as kind (no_work)
    on conflict (scan_id, step, parent_task_id, item_ordinal) where superseded_at is null do nothing`);
}

/** One child for each parent, of a Single step without foreach, or a no-work child of a no-work parent. */
export function insertChildren(
  db: Db,
  scan: ScanKey,
  child: {
    step: string;
    sourcesId: string | null;
    definitionRevision: number;
    noWork: boolean;
    inputsDue: boolean;
  },
  children: readonly { taskId: TaskId; parentTaskId: TaskId }[],
): Promise<number> {
  return db.execute(sql('task.insert_children')`
    insert into sonar.task (task_id, workspace_id, scan_id, step, parent_task_id, sources_id, status, no_work,
                            plan_due, finished_at, definition_revision, inputs_due)
    select task_id, ${scan.workspaceId}, ${scan.scanId}, ${child.step}, parent, ${child.sourcesId}::uuid,
           case when ${child.noWork}::boolean then 'Completed' else 'Pending' end, ${child.noWork}::boolean,
           ${child.noWork}::boolean, case when ${child.noWork}::boolean then clock_timestamp() end,
           ${child.definitionRevision}, ${child.inputsDue}::boolean and not ${child.noWork}::boolean
    from unnest(${children.map((c) => c.taskId)}::uuid[], ${children.map((c) => c.parentTaskId)}::uuid[]) as new (task_id, parent)
    on conflict (scan_id, step, parent_task_id, item_ordinal) where superseded_at is null do nothing`);
}

/** Finished tasks whose dependents are not made yet. */
export function planDueTasks(
  db: Db,
  scanId: ScanId,
  limit: number,
): Promise<{ task_id: TaskId; step: string; no_work: boolean }[]> {
  return db.rows(sql('task.plan_due')`
    select task_id, step, no_work from sonar.task
    where scan_id = ${scanId} and plan_due and superseded_at is null order by step, task_id limit ${limit} for update`);
}

export async function clearPlanDue(db: Db, taskIds: readonly TaskId[]): Promise<void> {
  await db.execute(sql('task.clear_plan_due')`
    update sonar.task set plan_due = false where task_id = any(${taskIds}::uuid[]) and plan_due`);
}

/** What a step that begins late owes children to, in pages by id: tasks that its parent step had finished. */
export function finishedTasks(
  db: Db,
  scanId: ScanId,
  step: string,
  after: string,
  limit: number,
): Promise<{ task_id: TaskId; no_work: boolean }[]> {
  return db.rows(sql('task.finished')`
    select task_id, no_work from sonar.task
    where scan_id = ${scanId} and step = ${step} and status = 'Completed' and superseded_at is null
      and task_id > ${after} and finalized
    order by task_id limit ${limit}`);
}

/** What is left to do in each step, by existence only: costs what is open, not what was done. */
export function stepOpenness(
  db: Db,
  scanId: ScanId,
): Promise<
  { step: string; open_tasks: boolean; open_expansions: boolean; plan_due: boolean; pending: boolean }[]
> {
  return db.rows(sql('task.openness')`
    select s.step,
      exists (select from sonar.task t where t.scan_id = s.scan_id and t.step = s.step and t.superseded_at is null
              and (t.status in ('Pending', 'Published', 'Running') or not t.finalized)) as open_tasks,
      exists (select from sonar.expansion e where e.scan_id = s.scan_id and e.step = s.step and e.done_at is null) as open_expansions,
      exists (select from sonar.task t where t.scan_id = s.scan_id and t.step = s.step and t.plan_due) as plan_due,
      exists (select from sonar.task t where t.scan_id = s.scan_id and t.step = s.step and t.status = 'Pending') as pending
    from sonar.scan_step s where s.scan_id = ${scanId}`);
}

interface OpenTaskRow {
  task_id: TaskId;
  attempt_id: string | null;
  status: string;
}

/**
 * A statement of its own: one that locks and acts at once would act on what it saw before it waited for the lock,
 * and miss an attempt that a placement pass had just made.
 */
export function lockOpenTasks(
  db: Db,
  scanId: ScanId,
  steps: readonly string[] | null,
  limit: number,
): Promise<OpenTaskRow[]> {
  return db.rows(sql('task.lock_open')`
    select task_id, attempt_id, status from sonar.task
    where scan_id = ${scanId} and superseded_at is null and status in ('Pending', 'Published', 'Running')
      and (${steps}::text[] is null or step = any(${steps}::text[]))
    order by task_id limit ${limit} for update`);
}

/** Like {@link lockOpenTasks}, of tasks that were not dispatched. */
export function lockPendingTasks(
  db: Db,
  scanId: ScanId,
  steps: readonly string[],
  limit: number,
): Promise<OpenTaskRow[]> {
  return db.rows(sql('task.lock_pending')`
    select task_id, attempt_id, status from sonar.task
    where scan_id = ${scanId} and step = any(${steps}::text[]) and status = 'Pending' and superseded_at is null
    order by task_id limit ${limit} for update`);
}

/**
 * Locked open tasks become Cancelled. A command that has not started never will: its attempt has ended. One that
 * runs is asked to end, and counts for capacity until it is known to have.
 */
export async function cancelTasks(
  db: Db,
  tasks: readonly OpenTaskRow[],
  why: { code: string; message: string },
): Promise<void> {
  await db.execute(sql('task.cancel')`
    with open as (
      select * from unnest(${tasks.map((task) => task.task_id)}::uuid[], ${tasks.map((task) => task.attempt_id)}::uuid[],
                           ${tasks.map((task) => task.status)}::text[]) as o (task_id, attempt_id, status)),
    locked as (
      select a.attempt_id, o.status from sonar.attempt a join open o on o.attempt_id = a.attempt_id
      where a.ended_at is null order by a.attempt_id for update of a),
    ended as (
      update sonar.attempt a
      set cancel_requested_at = clock_timestamp(),
          ended_at = case when l.status = 'Published' then clock_timestamp() end,
          end_reason = case when l.status = 'Published' then 'cancelled' end
      from locked l where a.attempt_id = l.attempt_id)
    update sonar.task t
    set status = 'Cancelled', attempt_id = null, finished_at = clock_timestamp(), failure_code = ${why.code},
        failure_message = ${why.message}
    from open o where t.task_id = o.task_id`);
}

/** Pins the finished results of the given steps: by step, then in the order of their items. */
export function pinSources(
  db: Db,
  scan: ScanKey,
  ownerId: string,
  steps: readonly string[],
): Promise<number> {
  return db.execute(sql('task.pin_sources')`
    insert into sonar.pinned_source (owner_id, ordinal, workspace_id, scan_id, task_id, attempt_id, digest)
    select ${ownerId}, row_number() over (order by array_position(${steps}::text[], step), item_ordinal nulls last, task_id) - 1,
           ${scan.workspaceId}, ${scan.scanId}, task_id, accepted_attempt_id, accepted_digest
    from sonar.task
    where scan_id = ${scan.scanId} and step = any(${steps}::text[]) and status = 'Completed' and not no_work
      and superseded_at is null`);
}
