// Input files that Sonar makes of rows, and the tasks that wait for them.
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface InputFileRow {
  owner_id: string;
  input: string;
  lines: number;
}

/** What is made already of a step's inputs, of any of the given owners. */
export function inputFilesOf(
  db: Db,
  scanId: ScanId,
  step: string,
  owners: readonly string[],
): Promise<InputFileRow[]> {
  return db.rows(sql('input_file.of_owners')`
    select owner_id, input, lines from sonar.input_file
    where owner_id = any(${owners}::uuid[]) and scan_id = ${scanId} and step = ${step}`);
}

export interface NewInputFile {
  ownerId: string;
  step: string;
  input: string;
  objectKey: string;
  size: number;
  sha256: string;
  lines: number;
  refused: number;
}

/** 0 rows: another pass has made it. */
export function insertInputFile(
  db: Db,
  scan: { scanId: ScanId; workspaceId: string },
  file: NewInputFile,
): Promise<number> {
  return db.execute(sql('input_file.insert')`
    insert into sonar.input_file (owner_id, step, input, workspace_id, scan_id, object_key, size, sha256, lines, refused)
    values (${file.ownerId}, ${file.step}, ${file.input}, ${scan.workspaceId}, ${scan.scanId}, ${file.objectKey},
            ${file.size}, ${file.sha256}, ${file.lines}, ${file.refused})
    on conflict (owner_id, step, input) do nothing`);
}

export interface WaitingTaskRow {
  task_id: TaskId;
  step: string;
  parent_task_id: TaskId | null;
  sources_id: string | null;
}

/** Pending tasks whose inputs are not made, oldest first. */
export function tasksWithoutInputs(
  db: Db,
  scanId: ScanId,
  after: string | null,
  limit: number,
): Promise<WaitingTaskRow[]> {
  return db.rows(sql('input_file.waiting_tasks')`
    select task_id, step, parent_task_id, sources_id from sonar.task
    where scan_id = ${scanId} and inputs_due and status = 'Pending' and (${after}::uuid is null or task_id > ${after}::uuid)
    order by task_id limit ${limit}`);
}

export async function inputsAreDue(db: Db, scanId: ScanId): Promise<boolean> {
  const [row] = await db.rows<{ due: boolean }>(sql('input_file.due')`
    select exists (select from sonar.task where scan_id = ${scanId} and inputs_due and status = 'Pending') as due`);
  return row?.due ?? false;
}

/** Their inputs are there: they may be placed. Those in `noWork` have nothing to do and are over. */
export async function releaseWaitingTasks(
  db: Db,
  taskIds: readonly TaskId[],
  noWork: readonly TaskId[],
): Promise<void> {
  await db.execute(sql('input_file.release_tasks')`
    update sonar.task t
    set inputs_due = false, no_work = i.idle, plan_due = i.idle,
        status = case when i.idle then 'Completed' else t.status end,
        finished_at = case when i.idle then clock_timestamp() else t.finished_at end
    from (select id, id = any(${noWork}::uuid[]) as idle from unnest(${taskIds}::uuid[]) as given (id)) i
    where t.task_id = i.id and t.inputs_due and t.status = 'Pending'`);
}
