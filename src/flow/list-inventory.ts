// A page of records that match, after examining a bounded number of them: whoever asks for what is rare is given less
// than a page and goes on where this one ended.
import type { SourceId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import type { RecordState } from '#sonar/domain/inventory-fold.ts';
import {
  examineInventory,
  examineSource,
  type RecordFilter,
  type RecordRow,
} from '#sonar/stores/inventory-lists.ts';

// About a second of reading; more would make one request hold a connection for long.
const examinedPerPage = 20_000;
const examinedAtOnce = 4_000;

export interface Position {
  type: string;
  key: string;
}

/** @param of the workspace, or one source: then everything of a record is as that source saw it. */
export async function listInventory(
  db: Db,
  of: { workspaceId: string; sourceId: SourceId | null },
  filter: RecordFilter,
  after: Position,
  limit: number,
): Promise<{ rows: RecordRow<RecordState>[]; next: Position | null }> {
  const rows: RecordRow<RecordState>[] = [];
  let at = after;
  // One more than is wanted says whether there is a next page.
  let examine = limit + 1;
  for (let examined = 0; examined < examinedPerPage; examine = Math.min(examine * 2, examinedAtOnce)) {
    const page = { after: at, examine };
    const found =
      of.sourceId === null
        ? await examineInventory<RecordState>(db, of.workspaceId, filter, page)
        : await examineSource<RecordState>(db, of.sourceId, filter, page);
    const last = found.at(-1);
    for (const row of found) {
      if (!row.matches) continue;
      if (rows.length === limit) return { rows, next: positionOf(rows.at(-1) ?? row) };
      rows.push(row);
    }
    if (last === undefined || last.place < examine) return { rows, next: null };
    examined += last.place;
    at = positionOf(last);
  }
  return { rows, next: at };
}

export const positionOf = ({ type, key }: Position): Position => ({ type, key });
