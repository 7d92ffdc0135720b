import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface ExpansionRow {
  expansion_id: string;
  step: string;
  parent_task_id: TaskId | null;
  next_ordinal: number;
  made: number;
}

/** One for the whole step; made once however often it is asked for. */
export async function insertExpansion(
  db: Db,
  scan: { scanId: ScanId; workspaceId: string },
  expansionId: string,
  step: string,
): Promise<void> {
  await db.execute(sql('expansion.insert')`
    insert into sonar.expansion (expansion_id, workspace_id, scan_id, step)
    values (${expansionId}, ${scan.workspaceId}, ${scan.scanId}, ${step})
    on conflict (scan_id, step, parent_task_id) do nothing`);
}

/** One for each parent. */
export async function insertExpansionsOfParents(
  db: Db,
  scan: { scanId: ScanId; workspaceId: string },
  step: string,
  parents: readonly { expansionId: string; taskId: TaskId }[],
): Promise<void> {
  await db.execute(sql('expansion.insert_of_parents')`
    insert into sonar.expansion (expansion_id, workspace_id, scan_id, step, parent_task_id)
    select expansion_id, ${scan.workspaceId}, ${scan.scanId}, ${step}, parent
    from unnest(${parents.map((p) => p.expansionId)}::uuid[], ${parents.map((p) => p.taskId)}::uuid[]) as new (expansion_id, parent)
    on conflict (scan_id, step, parent_task_id) do nothing`);
}

export function openExpansions(db: Db, scanId: ScanId, limit: number): Promise<ExpansionRow[]> {
  return db.rows(sql('expansion.open')`
    select expansion_id, step, parent_task_id, next_ordinal, made
    from sonar.expansion where scan_id = ${scanId} and done_at is null order by expansion_id limit ${limit}`);
}

/** Moves the expansion on from where its reader began; 0 rows: another pass has moved it. */
export function advanceExpansion(
  db: Db,
  expansionId: string,
  from: number,
  to: { nextOrdinal: number; made: number; done: boolean },
): Promise<number> {
  return db.execute(sql('expansion.advance')`
    update sonar.expansion
    set next_ordinal = ${to.nextOrdinal}, made = made + ${to.made},
        done_at = case when ${to.done}::boolean then clock_timestamp() end
    where expansion_id = ${expansionId} and next_ordinal = ${from} and done_at is null`);
}

export function insertExpandedTasks(
  db: Db,
  task: {
    scanId: ScanId;
    workspaceId: string;
    step: string;
    parentTaskId: TaskId | null;
    sourcesId: string | null;
    definitionRevision: number;
  },
  items: readonly { taskId: TaskId; ordinal: number; item: JsonValue }[],
): Promise<number> {
  return db.execute(sql('expansion.insert_tasks')`
    insert into sonar.task (task_id, workspace_id, scan_id, step, parent_task_id, sources_id, item_ordinal, item,
                            status, definition_revision)
    select (i->>'taskId')::uuid, ${task.workspaceId}, ${task.scanId}, ${task.step}, ${task.parentTaskId}::uuid,
           ${task.sourcesId}::uuid, (i->>'ordinal')::bigint, i->'item', 'Pending', ${task.definitionRevision}
    from jsonb_array_elements(${JSON.stringify(items)}::jsonb) as i
    on conflict (scan_id, step, parent_task_id, item_ordinal) where superseded_at is null do nothing`);
}
