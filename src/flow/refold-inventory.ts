// Taking a scan out of the inventory: its share of each record goes, and the record is folded again from what the other
// scans and imports have seen of it. A record that nobody else has seen goes too.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { mergeStates, type RecordState } from '#sonar/domain/inventory-fold.ts';
import { deleteRecords, lockRecords, type RecordKeyRow, writeRecords } from '#sonar/stores/inventory.ts';
import {
  deleteCounts,
  deleteObservations,
  deleteSourceRecords,
  keysOfSource,
  sourcesOfRecords,
} from '#sonar/stores/source-records.ts';
import { recordWrite } from './upsert-inventory.ts';

// A batch holds the locks of its records: finalizations of other scans wait for as long as it takes.
const recordsPerBatch = 500;
const observationsPerBatch = 10_000;
const sourcesPerPage = 2_000;

/**
 * One bounded batch, each transaction whole in itself: call it until `done`; a caller that was killed begins again. The
 * scan must have ended, with nothing unfinalized: what is finalized later would come back.
 */
export async function forgetScan(
  database: Database,
  scanId: ScanId,
): Promise<{ records: number; observations: number; done: boolean }> {
  const records = await database.transaction((tx) => forgetRecords(tx, scanId));
  if (records > 0) return { records, observations: 0, done: false };
  const observations = await deleteObservations(database, scanId, observationsPerBatch);
  if (observations > 0) return { records: 0, observations, done: false };
  await deleteCounts(database, scanId);
  return { records: 0, observations: 0, done: true };
}

async function forgetRecords(tx: Db, scanId: ScanId): Promise<number> {
  const keys = await keysOfSource(tx, scanId, recordsPerBatch);
  if (keys.length === 0) return 0;
  // In statements of their own, in the order that all writers lock in: what follows sees all that they have committed.
  const locked = await lockRecords<RecordState>(tx, keys);
  await deleteSourceRecords(tx, scanId, keys);
  // Only those that are held: another process may have taken the scan out of the others while this one waited, and
  // whoever makes them anew since then holds no lock that this one has.
  await refoldRecords(
    tx,
    locked.map((row) => ({ workspaceId: row.workspace_id, type: row.type, key: row.key })),
  );
  return keys.length;
}

/** Under the locks of the records, which are of one workspace. */
async function refoldRecords(tx: Db, keys: readonly RecordKeyRow[]): Promise<void> {
  const [first] = keys;
  if (first === undefined) return;
  const states = new Map<string, RecordState>();
  let after = { type: '', key: '', sourceId: '00000000-0000-0000-0000-000000000000' };
  for (;;) {
    const page = await sourcesOfRecords<RecordState>(tx, first.workspaceId, keys, after, sourcesPerPage);
    for (const row of page) {
      const id = JSON.stringify([row.type, row.key]);
      states.set(id, mergeStates(states.get(id) ?? null, row.state));
    }
    const last = page.at(-1);
    if (last === undefined || page.length < sourcesPerPage) break;
    after = { type: last.type, key: last.key, sourceId: last.source_id };
  }
  const stateOf = (key: RecordKeyRow): RecordState | undefined =>
    states.get(JSON.stringify([key.type, key.key]));
  await writeRecords(
    tx,
    keys.flatMap((key) => {
      const state = stateOf(key);
      return state ? [recordWrite(key, state)] : [];
    }),
  );
  const gone = keys.filter((key) => stateOf(key) === undefined);
  if (gone.length > 0) await deleteRecords(tx, gone);
}
