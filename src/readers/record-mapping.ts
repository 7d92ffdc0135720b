// Rows to records by the definition's `record` and `fields`.
import type { JsonValue, ReadSpec, Row } from '#sonar/contracts/definition.ts';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { fieldAt } from '#sonar/domain/records-path.ts';

/**
 * The record of a row: the mapped fields, or the row's own where none are mapped. Fields that the row lacks
 * are left out. None where the definition names no record.
 */
export function draftsOf(row: Row, spec: ReadSpec): RecordDraft<string>[] {
  const type = spec.record;
  if (type === null) return [];
  const map = Object.entries(spec.fields);
  if (map.length === 0) return [{ type, fields: row }];
  const fields: [string, JsonValue][] = [];
  for (const [field, path] of map) {
    const value = fieldAt(row, path);
    if (value !== undefined) fields.push([field, value]);
  }
  return [{ type, fields: Object.fromEntries(fields) }];
}
