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
  staged: boolean;
  next_group: number;
  /** Start of a line of a list, and the ordinal of that line's first item. */
  at_byte: number;
  at_ordinal: number;
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

/** Not those of steps that were removed or begin anew: they are closed or go, a batch at a time. */
export function openExpansions(db: Db, scanId: ScanId, limit: number): Promise<ExpansionRow[]> {
  return db.rows(sql('expansion.open')`
    select e.expansion_id, e.step, e.parent_task_id, e.next_ordinal, e.made, e.staged, e.next_group, e.at_byte, e.at_ordinal
    from sonar.scan_step p join sonar.expansion e on e.scan_id = p.scan_id and e.step = p.step
    where p.scan_id = ${scanId} and not p.removed and not p.voiding and e.done_at is null
    order by e.expansion_id limit ${limit}`);
}

/** Locks an expansion that is still where its reader began; false: another pass has moved it. */
export async function lockExpansion(
  db: Db,
  expansionId: string,
  at: { nextOrdinal: number; nextGroup: number },
): Promise<boolean> {
  const rows = await db.rows<{ expansion_id: string }>(sql('expansion.lock')`
    select expansion_id from sonar.expansion
    where expansion_id = ${expansionId} and next_ordinal = ${at.nextOrdinal} and next_group = ${at.nextGroup}
      and done_at is null
    for update`);
  return rows.length === 1;
}

/**
 * Nothing more comes of the steps' streams: a batch of what they have staged goes, then a batch of them is closed.
 * @returns whether there may be more
 */
export async function closeExpansions(
  db: Db,
  scanId: ScanId,
  steps: readonly string[],
  limit: number,
): Promise<boolean> {
  const dropped = await db.execute(sql('expansion.drop_staged')`
    delete from sonar.expansion_row where (expansion_id, ordinal) in (
      select r.expansion_id, r.ordinal from sonar.expansion e join sonar.expansion_row r using (expansion_id)
      where e.scan_id = ${scanId} and e.step = any(${steps}::text[]) and e.done_at is null limit ${limit})`);
  if (dropped === limit) return true;
  const closed = await db.execute(sql('expansion.close')`
    update sonar.expansion set done_at = clock_timestamp()
    where expansion_id in (
      select expansion_id from sonar.expansion
      where scan_id = ${scanId} and step = any(${steps}::text[]) and done_at is null limit ${limit})`);
  return closed === limit;
}

/** Of an expansion that this transaction has locked. */
export function advanceExpansion(
  db: Db,
  expansionId: string,
  to: {
    nextOrdinal: number;
    nextGroup: number;
    atByte: number;
    atOrdinal: number;
    made: number;
    staged: boolean;
    done: boolean;
  },
): Promise<number> {
  return db.execute(sql('expansion.advance')`
    update sonar.expansion
    set next_ordinal = ${to.nextOrdinal}, next_group = ${to.nextGroup}, at_byte = ${to.atByte},
        at_ordinal = ${to.atOrdinal}, made = made + ${to.made},
        staged = ${to.staged}, done_at = case when ${to.done}::boolean then clock_timestamp() end
    where expansion_id = ${expansionId}`);
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

/** Takes values for an expansion; answers those that nothing in the scan's step had taken before. Hex digests. */
export async function claimUnique(
  db: Db,
  owner: { scanId: ScanId; workspaceId: string; step: string; expansionId: string },
  digests: readonly string[],
): Promise<Set<string>> {
  const rows = await db.rows<{ digest: string }>(sql('expansion.claim_unique')`
    insert into sonar.unique_item (scan_id, step, value_sha256, workspace_id, expansion_id)
    select ${owner.scanId}, ${owner.step}, decode(digest, 'hex'), ${owner.workspaceId}, ${owner.expansionId}
    from unnest(${digests}::text[]) as new (digest) order by digest
    on conflict do nothing
    returning encode(value_sha256, 'hex') as digest`);
  return new Set(rows.map((row) => row.digest));
}

export function stageRows(
  db: Db,
  owner: { expansionId: string; workspaceId: string },
  rows: readonly { ordinal: number; groupKey: string | null; item: JsonValue }[],
): Promise<number> {
  return db.execute(sql('expansion.stage_rows')`
    insert into sonar.expansion_row (expansion_id, ordinal, workspace_id, group_key, item)
    select ${owner.expansionId}, (r->>'ordinal')::bigint, ${owner.workspaceId}, decode(r->>'groupKey', 'hex'), r->'item'
    from jsonb_array_elements(${JSON.stringify(rows)}::jsonb) as r`);
}

export interface StagedRow {
  ordinal: number;
  item: JsonValue;
}

/** Rows that have not become tasks yet, in their order after `after`. */
export function stagedRows(db: Db, expansionId: string, after: number, limit: number): Promise<StagedRow[]> {
  return db.rows(sql('expansion.staged_rows')`
    select ordinal, item from sonar.expansion_row
    where expansion_id = ${expansionId} and ordinal > ${after} order by ordinal limit ${limit}`);
}

/** Removes what has become a batch: everything up to an ordinal. */
export function dropRowsTo(db: Db, expansionId: string, ordinal: number): Promise<number> {
  return db.execute(sql('expansion.drop_rows_to')`
    delete from sonar.expansion_row where expansion_id = ${expansionId} and ordinal <= ${ordinal}`);
}

/** The next groups, in the order of their first rows; looks at no more rows than `window`. */
export async function nextGroups(
  db: Db,
  expansionId: string,
  window: number,
  limit: number,
): Promise<string[]> {
  const rows = await db.rows<{ group_key: string }>(sql('expansion.next_groups')`
    select encode(group_key, 'hex') as group_key
    from (select group_key, ordinal from sonar.expansion_row
          where expansion_id = ${expansionId} order by ordinal limit ${window}) first
    group by group_key order by min(ordinal) limit ${limit}`);
  return rows.map((row) => row.group_key);
}

export interface GroupRow {
  group_key: string;
  ordinal: number;
  item: JsonValue;
}

/** All rows of the given groups, a page after the other. */
export function groupRows(
  db: Db,
  expansionId: string,
  groups: readonly string[],
  after: { groupKey: string; ordinal: number },
  limit: number,
): Promise<GroupRow[]> {
  return db.rows(sql('expansion.group_rows')`
    select encode(group_key, 'hex') as group_key, ordinal, item from sonar.expansion_row
    where expansion_id = ${expansionId}
      and group_key = any(select decode(g, 'hex') from unnest(${groups}::text[]) as given (g))
      and (group_key, ordinal) > (decode(${after.groupKey}, 'hex'), ${after.ordinal}::bigint)
    order by group_key, ordinal limit ${limit}`);
}

export function dropGroups(db: Db, expansionId: string, groups: readonly string[]): Promise<number> {
  return db.execute(sql('expansion.drop_groups')`
    delete from sonar.expansion_row
    where expansion_id = ${expansionId}
      and group_key = any(select decode(g, 'hex') from unnest(${groups}::text[]) as given (g))`);
}

export interface NewTaskFile {
  taskId: TaskId;
  input: string;
  path: string;
  objectKey: string;
  size: number;
  sha256: string;
}

/** Of tasks that were made in the same transaction; what belongs to none is left out. */
export function insertTaskFiles(db: Db, workspaceId: string, files: readonly NewTaskFile[]): Promise<number> {
  return db.execute(sql('expansion.insert_task_files')`
    insert into sonar.task_file (task_id, input, path, workspace_id, object_key, size, sha256)
    select t.task_id, f->>'input', f->>'path', ${workspaceId}, f->>'objectKey', (f->>'size')::bigint, f->>'sha256'
    from jsonb_array_elements(${JSON.stringify(files)}::jsonb) as f
    join sonar.task t on t.task_id = (f->>'taskId')::uuid`);
}
