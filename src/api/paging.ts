// Lists a page at a time: cursors name the last row of the page before, and nobody but this api reads them.
import { uuidPattern } from '#sonar/contracts/ids.ts';
import { SonarError } from '#sonar/platform/errors.ts';

/** One row more than asked was read: it says whether there is a next page, and is left out. */
export function page<Row, Item>(
  rows: Row[],
  limit: number,
  view: (row: Row) => Item,
  cursor: (row: Row) => string,
) {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown.map(view),
    next: rows.length > limit && last ? cursorOf(cursor(last)) : null,
  };
}

export const cursorOf = (last: string): string => Buffer.from(last).toString('base64url');

export function readCursor(after: string | undefined): string | undefined {
  if (after === undefined) return undefined;
  const cursor = Buffer.from(after, 'base64url').toString();
  if (cursor === '' || cursor.includes('\0')) throw foreignCursor();
  return cursor;
}

export const foreignCursor = (): SonarError =>
  new SonarError('invalid', '"after" is not a cursor that this api gave');

export function cursorId(after: string | undefined): string | null {
  const id = readCursor(after);
  if (id === undefined || uuidPattern.test(id)) return id ?? null;
  throw foreignCursor();
}

export function splitCursor(after: string | undefined): string[] {
  const cursor = readCursor(after);
  if (cursor === undefined) return [];
  const space = cursor.indexOf(' ');
  if (space < 0) throw foreignCursor();
  return [cursor.slice(0, space), cursor.slice(space + 1)];
}
