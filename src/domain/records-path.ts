// Reaching into rows: `item.info.name`, `pick: host`, record fields.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';

/** The value at a path of own fields and array positions; undefined where there is none. */
export function valueAt(value: JsonValue | undefined, path: readonly string[]): JsonValue | undefined {
  let current = value;
  for (const segment of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, segment)) return undefined;
    current = Array.isArray(current) ? elementAt(current, segment) : current[segment];
  }
  return current;
}

/** `length` is an own property of arrays too; only positions are elements. */
const elementAt = (array: JsonValue[], segment: string): JsonValue | undefined =>
  /^\d+$/.test(segment) ? array[Number(segment)] : undefined;

/** A row's field by dotted path; a field whose own name holds the dots comes first. */
export const fieldAt = (row: Row, path: string): JsonValue | undefined =>
  Object.hasOwn(row, path) ? row[path] : valueAt(row, path.split('.'));

/**
 * The item that a row gives: the row itself, or the picked field. Undefined: the row has no such value
 * (missing, null or empty) and is passed over.
 */
export function pickItem(row: Row, pick: string | null): JsonValue | undefined {
  if (pick === null) return row;
  const value = fieldAt(row, pick);
  return value === null || value === '' ? undefined : value;
}
