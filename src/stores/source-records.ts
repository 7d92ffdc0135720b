// What each source (a scan or an import) has seen of each record. Whoever changes a row holds the lock of the
// inventory's row of the same record, so these rows need no locks of their own.
import type { ScanId, SourceId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';
import type { RecordKeyRow, RecordWrite } from './inventory.ts';

export interface SourceRecordWrite<State> extends RecordWrite<State> {
  sourceId: SourceId;
  /** Sorted. */
  steps: readonly string[];
}

/** @returns those that were not there. */
export function insertSourceRecords<State>(
  db: Db,
  records: readonly SourceRecordWrite<State>[],
): Promise<{ source_id: SourceId; type: string; key: string }[]> {
  return db.rows(sql('source_record.insert')`
    insert into sonar.source_record (source_id, workspace_id, type, key, state, first_seen_at, last_seen_at, steps)
    select (r->>'sourceId')::uuid, r->>'workspaceId', r->>'type', r->>'key', r->'state', (r->>'firstSeenAt')::timestamptz,
           (r->>'lastSeenAt')::timestamptz, array(select jsonb_array_elements_text(r->'steps'))
    from jsonb_array_elements(${JSON.stringify(records)}::jsonb) as r
    order by 1, 3, 4
    on conflict (source_id, type, key) do nothing
    returning source_id, type, key`);
}

export function findSourceRecords<State>(
  db: Db,
  keys: readonly { sourceId: SourceId; type: string; key: string }[],
): Promise<{ source_id: SourceId; type: string; key: string; state: State; steps: string[] }[]> {
  return db.rows(sql('source_record.find')`
    select s.source_id, s.type, s.key, s.state, s.steps
    from unnest(${keys.map((k) => k.sourceId)}::uuid[], ${keys.map((k) => k.type)}::text[],
                ${keys.map((k) => k.key)}::text[]) as wanted (i, t, k)
    join sonar.source_record s on s.source_id = i and s.type = t and s.key = k`);
}

export async function writeSourceRecords<State>(
  db: Db,
  records: readonly SourceRecordWrite<State>[],
): Promise<void> {
  await db.execute(sql('source_record.write')`
    update sonar.source_record s
    set state = r->'state', first_seen_at = (r->>'firstSeenAt')::timestamptz, last_seen_at = (r->>'lastSeenAt')::timestamptz,
        steps = array(select jsonb_array_elements_text(r->'steps'))
    from jsonb_array_elements(${JSON.stringify(records)}::jsonb) as r
    where s.source_id = (r->>'sourceId')::uuid and s.type = r->>'type' and s.key = r->>'key'`);
}

/** Some records of a source, in order. */
export async function keysOfSource(db: Db, sourceId: SourceId, limit: number): Promise<RecordKeyRow[]> {
  const rows = await db.rows<{ workspace_id: string; type: string; key: string }>(sql(
    'source_record.keys_of_source',
  )`
    select workspace_id, type, key from sonar.source_record where source_id = ${sourceId}
    order by type, key limit ${limit}`);
  return rows.map((row) => ({ workspaceId: row.workspace_id, type: row.type, key: row.key }));
}

export function deleteSourceRecords(
  db: Db,
  sourceId: SourceId,
  keys: readonly RecordKeyRow[],
): Promise<number> {
  return db.execute(sql('source_record.delete')`
    delete from sonar.source_record s
    using unnest(${keys.map((k) => k.type)}::text[], ${keys.map((k) => k.key)}::text[]) as gone (t, k)
    where s.source_id = ${sourceId} and s.type = t and s.key = k`);
}

/** What all sources say of records of one workspace; a page in the order of type, key and source. */
export function sourcesOfRecords<State>(
  db: Db,
  workspaceId: string,
  keys: readonly RecordKeyRow[],
  after: { type: string; key: string; sourceId: string },
  limit: number,
): Promise<{ source_id: SourceId; type: string; key: string; state: State }[]> {
  return db.rows(sql('source_record.sources_of_records')`
    select s.source_id, s.type, s.key, s.state
    from unnest(${keys.map((k) => k.type)}::text[], ${keys.map((k) => k.key)}::text[]) as wanted (t, k)
    join sonar.source_record s on s.workspace_id = ${workspaceId} and s.type = t and s.key = k
    where (s.type, s.key, s.source_id) > (${after.type}::text, ${after.key}::text, ${after.sourceId}::uuid)
    order by s.type, s.key, s.source_id limit ${limit}`);
}

/** Some observations of a scan. */
export function deleteObservations(db: Db, scanId: ScanId, limit: number): Promise<number> {
  return db.execute(sql('source_record.delete_observations')`
    delete from sonar.observation where ctid = any(array(
      select ctid from sonar.observation where scan_id = ${scanId} limit ${limit}))`);
}

export async function deleteCounts(db: Db, sourceId: SourceId): Promise<void> {
  await db.execute(sql('source_record.delete_counts')`
    delete from sonar.source_count where source_id = ${sourceId}`);
}

/** Records by type, without counting any. */
export function recordCounts(db: Db, sourceId: SourceId): Promise<{ type: string; records: number }[]> {
  return db.rows(sql('source_record.counts')`
    select type, records from sonar.source_count where source_id = ${sourceId} and records > 0 order by type`);
}
