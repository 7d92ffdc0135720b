// Observations into the inventory: only new ones are merged, rows are locked in key order, and the fold of
// `domain/inventory-fold.ts` decides; so a replay or another order leaves the same bytes.
import type { Db } from '#sonar/db/pool.ts';
import { mergeObservation, type RecordState } from '#sonar/domain/inventory-fold.ts';
import {
  ensureRecords,
  insertObservations,
  lockRecords,
  type NewObservation,
  type RecordKeyRow,
  writeRecords,
} from '#sonar/stores/inventory.ts';

/** In the transaction that ends the finalization they come from, or a batch of it. @returns how many were new. */
export async function upsertInventory(tx: Db, observations: readonly NewObservation[]): Promise<number> {
  if (observations.length === 0) return 0;
  const fresh = (await insertObservations(tx, observations)).flatMap((place) => observations[place] ?? []);
  if (fresh.length === 0) return 0;
  const byRecord = new Map<string, { key: RecordKeyRow; observations: NewObservation[] }>();
  for (const observation of fresh) {
    const key = { workspaceId: observation.workspaceId, type: observation.type, key: observation.key };
    const id = identityOf(key);
    const known = byRecord.get(id);
    if (known) known.observations.push(observation);
    else byRecord.set(id, { key, observations: [observation] });
  }
  const keys = [...byRecord.values()].map((entry) => entry.key);
  await ensureRecords(tx, keys);
  const rows = await lockRecords<RecordState>(tx, keys);
  await writeRecords(
    tx,
    rows.flatMap((row) => {
      const key: RecordKeyRow = { workspaceId: row.workspace_id, type: row.type, key: row.key };
      const entry = byRecord.get(identityOf(key));
      if (!entry) return [];
      let state = row.state;
      for (const observation of entry.observations) state = mergeObservation(state, observation);
      return state ? [{ ...key, state, firstSeenAt: state.firstSeenAt, lastSeenAt: state.lastSeenAt }] : [];
    }),
  );
  return fresh.length;
}

const identityOf = (key: RecordKeyRow): string => JSON.stringify([key.workspaceId, key.type, key.key]);
