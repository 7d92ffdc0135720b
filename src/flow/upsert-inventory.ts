// Observations into the inventory: only new ones are merged, rows are locked in key order, and the fold of
// `domain/inventory-fold.ts` decides; so a replay or another order leaves the same bytes.
import type { SourceId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { mergeObservation, mergeStates, type RecordState } from '#sonar/domain/inventory-fold.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import {
  insertObservations,
  insertRecords,
  lockRecords,
  type NewObservation,
  type RecordKeyRow,
  type RecordWrite,
  writeRecords,
} from '#sonar/stores/inventory.ts';
import {
  findSourceRecords,
  insertSourceRecords,
  type SourceRecordWrite,
  writeSourceRecords,
} from '#sonar/stores/source-records.ts';

// Each round meets a record that was taken away since it was looked for: two in a row are rare enough.
const maxRounds = 5;

/** More at once costs more memory, and time that statements have a limit of; less costs more transactions. */
export const bytesAtOnce = 4 * 1024 * 1024;

/** All that is written of it: its sets may be larger than its fields. */
export const sizeOf = (observation: NewObservation): number => Buffer.byteLength(JSON.stringify(observation));

/** In the transaction that ends the finalization they come from, or a batch of it. @returns how many were new. */
export async function upsertInventory(tx: Db, observations: readonly NewObservation[]): Promise<number> {
  if (observations.length === 0) return 0;
  const fresh = (await insertObservations(tx, observations)).flatMap((place) => observations[place] ?? []);
  if (fresh.length === 0) return 0;
  const records = new Map<string, RecordWrite<RecordState>>();
  const ofSources = new Map<string, SourceRecordWrite<RecordState>>();
  for (const observation of fresh) {
    const { workspaceId, type, key } = observation;
    const record = { workspaceId, type, key };
    const id = identityOf(record);
    const state = mergeObservation(records.get(id)?.state ?? null, observation);
    records.set(id, recordWrite(record, state));
    const sourceId = sourceOf(observation);
    const place = JSON.stringify([sourceId, type, key]);
    const known = ofSources.get(place);
    ofSources.set(place, {
      ...recordWrite(record, mergeObservation(known?.state ?? null, observation)),
      sourceId,
      steps: union(known?.steps ?? [], observation.step === null ? [] : [observation.step]),
    });
  }
  await mergeRecords(tx, records);
  await mergeSourceRecords(tx, [...ofSources.values()]);
  return fresh.length;
}

const sourceOf = ({ scanId, attemptId }: NewObservation): SourceId => scanId ?? (attemptId as SourceId);

const identityOf = (key: RecordKeyRow): string => JSON.stringify([key.workspaceId, key.type, key.key]);

/** A row as it is written: its times are columns too. */
export const recordWrite = (
  { workspaceId, type, key }: RecordKeyRow,
  state: RecordState,
): RecordWrite<RecordState> => ({
  workspaceId,
  type,
  key,
  state,
  firstSeenAt: state.firstSeenAt,
  lastSeenAt: state.lastSeenAt,
});

const union = (some: readonly string[], others: readonly string[]): string[] =>
  [...new Set([...some, ...others])].toSorted();

/** Rows that are new are made as they are; the others are locked, merged and written. */
async function mergeRecords(tx: Db, records: ReadonlyMap<string, RecordWrite<RecordState>>): Promise<void> {
  let open = new Map(records);
  for (let round = 0; open.size > 0; round++) {
    if (round === maxRounds)
      throw new SonarError('unreachable', 'records were taken away while they were written; try again');
    for (const row of await insertRecords(tx, [...open.values()])) open.delete(identityOfRow(row));
    if (open.size === 0) return;
    const locked = await lockRecords<RecordState>(tx, [...open.values()]);
    const missing = new Map(open);
    await writeRecords(
      tx,
      locked.flatMap((row) => {
        const id = identityOfRow(row);
        const own = open.get(id);
        missing.delete(id);
        return own ? [recordWrite(own, mergeStates(row.state, own.state))] : [];
      }),
    );
    open = missing;
  }
}

const identityOfRow = (row: { workspace_id: string; type: string; key: string }): string =>
  identityOf({ workspaceId: row.workspace_id, type: row.type, key: row.key });

/** Under the locks of the records: nobody else writes these rows meanwhile. */
async function mergeSourceRecords(tx: Db, writes: readonly SourceRecordWrite<RecordState>[]): Promise<void> {
  const inserted = await insertSourceRecords(tx, writes);
  const done = new Set(inserted.map((row) => JSON.stringify([row.source_id, row.type, row.key])));
  const byPlace = new Map(
    writes
      .map((write) => [JSON.stringify([write.sourceId, write.type, write.key]), write] as const)
      .filter(([place]) => !done.has(place)),
  );
  if (byPlace.size === 0) return;
  const known = await findSourceRecords<RecordState>(tx, [...byPlace.values()]);
  await writeSourceRecords(
    tx,
    known.flatMap((row) => {
      const own = byPlace.get(JSON.stringify([row.source_id, row.type, row.key]));
      if (!own) return [];
      const state = mergeStates(row.state, own.state);
      return [{ ...own, ...recordWrite(own, state), steps: union(row.steps, own.steps) }];
    }),
  );
}
