import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { AttemptId, ImportId, ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface NewObservation {
  attemptId: AttemptId | ImportId;
  output: string;
  file: string;
  row: number;
  part: number;
  workspaceId: string;
  /** Null: of an import, whose id stands for the attempt's. */
  scanId: ScanId | null;
  /** Null: of an import. */
  step: string | null;
  type: string;
  key: string;
  orderKey: string;
  observedAt: string;
  fields: Record<string, JsonValue>;
  sets: Record<string, string[]>;
  partial: boolean;
}

/**
 * Inserts what is new, in the order of its key, so that two writers of the same never wait for each other in a ring.
 * The answer is the new ones' places in the given list: only those are merged.
 */
export async function insertObservations(db: Db, observations: readonly NewObservation[]): Promise<number[]> {
  const rows = await db.rows<{ place: number }>(sql('inventory.insert_observations')`
    with given as (
      select ordinality - 1 as place, o from jsonb_array_elements(${JSON.stringify(observations)}::jsonb) with ordinality as g (o, ordinality)),
    inserted as (
      insert into sonar.observation (attempt_id, output, file, row, part, workspace_id, scan_id, type, key, order_key,
                                     observed_at, fields, sets, partial)
      select (o->>'attemptId')::uuid, o->>'output', o->>'file', (o->>'row')::bigint, (o->>'part')::integer,
             o->>'workspaceId', (o->>'scanId')::uuid, o->>'type', o->>'key', o->>'orderKey',
             (o->>'observedAt')::timestamptz, o->'fields', o->'sets', (o->>'partial')::boolean
      from given order by 1, 2, 3, 4, 5
      on conflict (attempt_id, output, file, row, part) do nothing
      returning attempt_id, output, file, row, part)
    select g.place from given g join inserted i
      on i.attempt_id = (g.o->>'attemptId')::uuid and i.output = g.o->>'output' and i.file = g.o->>'file'
      and i.row = (g.o->>'row')::bigint and i.part = (g.o->>'part')::integer
    order by g.place`);
  return rows.map((row) => row.place);
}

export interface RecordKeyRow {
  workspaceId: string;
  type: string;
  key: string;
}

export interface RecordWrite<State> extends RecordKeyRow {
  state: State;
  firstSeenAt: string;
  lastSeenAt: string;
}

/**
 * Inserts the rows that are not there, in key order, so that two batches never wait for each other in a ring.
 * @returns which ones; all others are there already, or were a moment ago.
 */
export function insertRecords<State>(
  db: Db,
  records: readonly RecordWrite<State>[],
): Promise<{ workspace_id: string; type: string; key: string }[]> {
  return db.rows(sql('inventory.insert')`
    insert into sonar.inventory (workspace_id, type, key, state, first_seen_at, last_seen_at)
    select r->>'workspaceId', r->>'type', r->>'key', r->'state', (r->>'firstSeenAt')::timestamptz, (r->>'lastSeenAt')::timestamptz
    from jsonb_array_elements(${JSON.stringify(records)}::jsonb) as r
    order by r->>'workspaceId' collate "C", r->>'type' collate "C", r->>'key' collate "C"
    on conflict (workspace_id, type, key) do nothing
    returning workspace_id, type, key`);
}

/** In key order. A row that is not among the answers was removed since. */
export function lockRecords<State>(
  db: Db,
  keys: readonly RecordKeyRow[],
): Promise<{ workspace_id: string; type: string; key: string; state: State }[]> {
  return db.rows(sql('inventory.lock')`
    select i.workspace_id, i.type, i.key, i.state
    from unnest(${keys.map((k) => k.workspaceId)}::text[], ${keys.map((k) => k.type)}::text[],
                ${keys.map((k) => k.key)}::text[]) as wanted (w, t, k)
    join sonar.inventory i on i.workspace_id = w and i.type = t and i.key = k
    order by i.workspace_id, i.type, i.key for update of i`);
}

export async function writeRecords<State>(db: Db, records: readonly RecordWrite<State>[]): Promise<void> {
  await db.execute(sql('inventory.write')`
    update sonar.inventory i
    set state = r->'state', first_seen_at = (r->>'firstSeenAt')::timestamptz, last_seen_at = (r->>'lastSeenAt')::timestamptz
    from jsonb_array_elements(${JSON.stringify(records)}::jsonb) as r
    where i.workspace_id = r->>'workspaceId' and i.type = r->>'type' and i.key = r->>'key'`);
}

export function deleteRecords(db: Db, keys: readonly RecordKeyRow[]): Promise<number> {
  return db.execute(sql('inventory.delete')`
    delete from sonar.inventory i
    using unnest(${keys.map((k) => k.workspaceId)}::text[], ${keys.map((k) => k.type)}::text[],
                 ${keys.map((k) => k.key)}::text[]) as gone (w, t, k)
    where i.workspace_id = w and i.type = t and i.key = k`);
}
