// Pages of records by type and key. A statement reads no more rows than it is told to examine, whatever it is asked
// for: rows that do not match are passed over, and the last one examined is always given, so that the next page goes on.
import type { ScanId, SourceId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface RecordRow<State> {
  type: string;
  key: string;
  state: State;
  first_seen_at: string;
  last_seen_at: string;
}
export type ExaminedRow<State> = RecordRow<State> & { matches: boolean; place: number };

export interface RecordFilter {
  type: string | null;
  definition: string | null;
  contains: string | null;
  /** Pairs of a field and a value. */
  fields: readonly (readonly [string, string])[];
  seenSince: string | null;
  seenBefore: string | null;
  newSince: string | null;
  partial: boolean | null;
}

export interface ExaminedPage {
  after: { type: string; key: string };
  examine: number;
}

/**
 * The range to read: after the position, or from the type's first record on, and before the first of the next type. As
 * two comparisons of rows it is one range of the index, in its order.
 */
function rangeOf(filter: { type: string | null }, after: ExaminedPage['after']) {
  const { type } = filter;
  // Names of types are letters, digits, - and _.
  if (type === null) return { low: after, high: '~' };
  return { low: after.type === type ? after : { type, key: '' }, high: `${type}!` };
}

export function examineInventory<State>(
  db: Db,
  workspaceId: string,
  filter: RecordFilter,
  { after, examine }: ExaminedPage,
): Promise<ExaminedRow<State>[]> {
  const { low, high } = rangeOf(filter, after);
  return db.rows(sql('inventory.examine')`
    select type, key, state, first_seen_at, last_seen_at, matches, place from (
      select i.*, row_number() over (order by i.type, i.key) as place, count(*) over () as examined,
        (${filter.contains}::text is null or position(lower(${filter.contains}::text) in lower(i.key)) > 0)
        and (${filter.partial}::boolean is null or (i.state->>'partial')::boolean = ${filter.partial}::boolean)
        and (${filter.seenSince}::timestamptz is null or i.last_seen_at >= ${filter.seenSince}::timestamptz)
        and (${filter.seenBefore}::timestamptz is null or i.last_seen_at < ${filter.seenBefore}::timestamptz)
        and (${filter.newSince}::timestamptz is null or i.first_seen_at >= ${filter.newSince}::timestamptz)
        and not exists (
          select from jsonb_array_elements(${JSON.stringify(filter.fields)}::jsonb) as f
          where not (coalesce(i.state->'fields'->(f->>0)->>'value' = f->>1, false)
                     or coalesce(i.state->'sets'->(f->>0) ? (f->>1), false)))
        and (${filter.definition}::text is null or exists (
          select from sonar.source_record s join sonar.scan n on n.scan_id = s.source_id
          where s.workspace_id = i.workspace_id and s.type = i.type and s.key = i.key
            and n.definition_name = ${filter.definition}::text)) as matches
      from (
        select * from sonar.inventory
        where workspace_id = ${workspaceId} and (type, key) > (${low.type}::text, ${low.key}::text)
          and (type, key) < (${high}::text, '')
        order by type, key limit ${examine}) i) page
    where matches or place = examined order by place`);
}

/** The same of what one source saw. */
export function examineSource<State>(
  db: Db,
  sourceId: SourceId,
  filter: RecordFilter,
  { after, examine }: ExaminedPage,
): Promise<ExaminedRow<State>[]> {
  const { low, high } = rangeOf(filter, after);
  return db.rows(sql('source_record.examine')`
    select type, key, state, first_seen_at, last_seen_at, matches, place from (
      select i.*, row_number() over (order by i.type, i.key) as place, count(*) over () as examined,
        (${filter.contains}::text is null or position(lower(${filter.contains}::text) in lower(i.key)) > 0)
        and (${filter.partial}::boolean is null or (i.state->>'partial')::boolean = ${filter.partial}::boolean)
        and (${filter.seenSince}::timestamptz is null or i.last_seen_at >= ${filter.seenSince}::timestamptz)
        and (${filter.seenBefore}::timestamptz is null or i.last_seen_at < ${filter.seenBefore}::timestamptz)
        and (${filter.newSince}::timestamptz is null or i.first_seen_at >= ${filter.newSince}::timestamptz)
        and not exists (
          select from jsonb_array_elements(${JSON.stringify(filter.fields)}::jsonb) as f
          where not (coalesce(i.state->'fields'->(f->>0)->>'value' = f->>1, false)
                     or coalesce(i.state->'sets'->(f->>0) ? (f->>1), false)))
        and (${filter.definition}::text is null or exists (
          select from sonar.scan n where n.scan_id = i.source_id and n.definition_name = ${filter.definition}::text))
          as matches
      from (
        select * from sonar.source_record
        where source_id = ${sourceId} and (type, key) > (${low.type}::text, ${low.key}::text)
          and (type, key) < (${high}::text, '')
        order by type, key limit ${examine}) i) page
    where matches or place = examined order by place`);
}

export interface SeenRow<State> {
  type: string;
  key: string;
  state: State;
  steps: string[];
}

/** What one scan saw, in order; every row is wanted. */
export function pageOfSource<State>(
  db: Db,
  sourceId: SourceId,
  filter: { type: string | null },
  { after, examine }: ExaminedPage,
): Promise<SeenRow<State>[]> {
  const { low, high } = rangeOf(filter, after);
  return db.rows(sql('source_record.page')`
    select type, key, state, steps from sonar.source_record
    where source_id = ${sourceId} and (type, key) > (${low.type}::text, ${low.key}::text)
      and (type, key) < (${high}::text, '')
    order by type, key limit ${examine}`);
}

/** The newest scans of a definition that have ended, newest first. */
export function endedScansOf(
  db: Db,
  workspaceId: string,
  definition: string,
  limit: number,
): Promise<{ scan_id: ScanId }[]> {
  return db.rows(sql('inventory.ended_scans_of')`
    select scan_id from sonar.scan
    where workspace_id = ${workspaceId} and definition_name = ${definition} and finished_at is not null and deleting_at is null
    order by scan_id desc limit ${limit}`);
}

/** Steps of a scan of which some record could not be read. */
export async function stepsWithBadRecords(db: Db, scanId: ScanId): Promise<string[]> {
  const rows = await db.rows<{ step: string }>(sql('inventory.steps_with_bad_records')`
    select distinct a.step from sonar.finalization f join sonar.attempt a on a.attempt_id = f.attempt_id
    where f.scan_id = ${scanId} and f.bad_records > 0 and f.status <> 'superseded' order by a.step`);
  return rows.map((row) => row.step);
}

/** Inputs of which the later scan was not given all that the earlier one was given: lists by line, all else whole. */
export async function inputsNotGiven(db: Db, earlier: ScanId, later: ScanId): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql('inventory.inputs_not_given')`
    select e.name from sonar.scan_input e
    left join sonar.scan_input l on l.scan_id = ${later} and l.name = e.name
    where e.scan_id = ${earlier}
      and (l.name is null or e.type <> l.type or e.file_sha256 is distinct from l.file_sha256
        or case when e.content = l.content then false
                when e.file_sha256 is null and e.type in ('lines', 'domains', 'hosts', 'cidrs', 'urls') then exists (
                  select string_to_table(e.content, E'\n') except select string_to_table(l.content, E'\n'))
                else true end)
    order by e.name`);
  return rows.map((row) => row.name);
}
