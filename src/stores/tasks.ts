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

/** Finished tasks whose dependents are not made yet, oldest first. */
export function planDueTasks(
  db: Db,
  scanId: ScanId,
  limit: number,
): Promise<{ task_id: TaskId; step: string; no_work: boolean }[]> {
  return db.rows(sql('task.plan_due')`
    select task_id, step, no_work from sonar.task
    where scan_id = ${scanId} and plan_due order by task_id limit ${limit} for update`);
}

export async function clearPlanDue(db: Db, taskIds: readonly TaskId[]): Promise<void> {
  await db.execute(sql('task.clear_plan_due')`
    update sonar.task set plan_due = false where task_id = any(${taskIds}::uuid[]) and plan_due`);
}

/** A step that begins to be planned late looks at all that its upstream step has finished so far. */
export async function markPlanDue(db: Db, scanId: ScanId, step: string): Promise<void> {
  await db.execute(sql('task.mark_plan_due')`
    update sonar.task set plan_due = true
    where scan_id = ${scanId} and step = ${step} and status = 'Completed' and finalized
      and superseded_at is null and not plan_due`);
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
    from sonar.scan_step s where s.scan_id = ${scanId} and s.state = 'open'`);
}

/** Cancels open tasks of a scan, a batch at a time, and asks for the end of what runs. */
export async function cancelOpenTasks(db: Db, scanId: ScanId, code: string, limit: number): Promise<number> {
  const [row] = await db.rows<{ cancelled: number }>(sql('task.cancel_open')`
    with open as (
      select task_id, attempt_id, status from sonar.task
      where scan_id = ${scanId} and superseded_at is null and status in ('Pending', 'Published', 'Running')
      order by task_id limit ${limit} for update),
    -- A command that has not started never will: its attempt has ended. One that runs is asked to.
    ended as (
      update sonar.attempt a
      set cancel_requested_at = clock_timestamp(),
          ended_at = case when o.status = 'Published' then clock_timestamp() end,
          end_reason = case when o.status = 'Published' then 'cancelled' end
      from open o where a.attempt_id = o.attempt_id and a.ended_at is null),
    cancelled as (
      update sonar.task t
      set status = 'Cancelled', attempt_id = null, finished_at = clock_timestamp(), failure_code = ${code},
          failure_message = 'the scan ended before the task did'
      from open o where t.task_id = o.task_id returning 1)
    select count(*) as cancelled from cancelled`);
  return row?.cancelled ?? 0;
}

/** Pins the finished results of the given steps, step after step, in the order of their items. */
export function pinSources(
  db: Db,
  scan: ScanKey,
  ownerId: string,
  steps: readonly string[],
): Promise<number> {
  return db.execute(sql('task.pin_sources')`
    insert into sonar.pinned_source (owner_id, ordinal, workspace_id, scan_id, task_id, attempt_id, digest)
    select ${ownerId}, row_number() over (order by array_position(${steps}::text[], step), item_ordinal, task_id) - 1,
           ${scan.workspaceId}, ${scan.scanId}, task_id, accepted_attempt_id, accepted_digest
    from sonar.task
    where scan_id = ${scan.scanId} and step = any(${steps}::text[]) and status = 'Completed' and not no_work
      and superseded_at is null`);
}

export function stepOutcomes(
  db: Db,
  scanId: ScanId,
): Promise<{ step: string; completed: boolean; real_work: boolean; terminal: boolean }[]> {
  return db.rows(sql('task.outcomes')`
    select s.step,
      exists (select from sonar.task t where t.scan_id = s.scan_id and t.step = s.step and t.status = 'Completed'
              and t.superseded_at is null) as completed,
      exists (select from sonar.task t where t.scan_id = s.scan_id and t.step = s.step and t.status = 'Completed'
              and t.superseded_at is null and not t.no_work) as real_work,
      exists (select from sonar.task t where t.scan_id = s.scan_id and t.step = s.step
              and t.status in ('Completed', 'Failed', 'Cancelled') and t.superseded_at is null) as terminal
    from sonar.scan_step s where s.scan_id = ${scanId}`);
}
