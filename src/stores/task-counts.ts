import type { ScanId } from '#sonar/contracts/ids.ts';
import type { TaskStatus } from '#sonar/contracts/states.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface TaskCount {
  step: string;
  status: TaskStatus;
  no_work: boolean;
  tasks: number;
}

/** Folds what statements left behind; costs what changed since the last fold. */
export async function foldTaskCounts(db: Db, scanId: ScanId): Promise<void> {
  await db.execute(sql('task_count.fold')`
    with taken as (
      delete from sonar.task_count_delta where scan_id = ${scanId}
      returning workspace_id, step, status, no_work, tasks),
    summed as (
      select workspace_id, step, status, no_work, sum(tasks)::bigint as tasks from taken group by 1, 2, 3, 4)
    insert into sonar.task_count as c (scan_id, workspace_id, step, status, no_work, tasks)
    select ${scanId}, workspace_id, step, status, no_work, tasks from summed
    on conflict (scan_id, step, status, no_work) do update set tasks = c.tasks + excluded.tasks`);
}

/** Counts as of now, folded or not. */
export function taskCounts(db: Db, scanId: ScanId): Promise<TaskCount[]> {
  return db.rows(sql('task_count.of_scan')`
    select step, status, no_work, sum(tasks)::bigint as tasks from (
      select step, status, no_work, tasks from sonar.task_count where scan_id = ${scanId}
      union all
      select step, status, no_work, tasks from sonar.task_count_delta where scan_id = ${scanId}) both_kinds
    group by step, status, no_work having sum(tasks) <> 0`);
}

/** All tasks of a scan, in whatever state. */
export async function countTasks(db: Db, scanId: ScanId): Promise<number> {
  return (await taskCounts(db, scanId)).reduce((sum, count) => sum + count.tasks, 0);
}
