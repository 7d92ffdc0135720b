import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { DiffItem, InventoryItem } from '#sonar/contracts/inventory-api.ts';
import { formatTime } from './figures.ts';
import type { Column } from './table.ts';

/** Columns of an inventory: what it is, which one, and all that is known of it; a partial one comes from a command that did not complete. */
export const inventoryColumns: readonly Column<InventoryItem>[] = [
  { title: 'TYPE', cell: (row) => row.type },
  { title: 'KEY', cell: (row) => row.key, shrinkTo: 20 },
  {
    title: 'KNOWN',
    cell: (row) => `${row.partial ? '(partial) ' : ''}${knownOf(row.fields, row.sets)}`.trim(),
    shrinkTo: 20,
  },
  { title: 'FIRST SEEN', cell: (row) => formatTime(row.firstSeenAt) },
  { title: 'LAST SEEN', cell: (row) => formatTime(row.lastSeenAt) },
];

/** `field=value` for every field and set that says something. */
export function knownOf(fields: Record<string, JsonValue>, sets: Record<string, string[]>): string {
  return [
    ...Object.entries(fields)
      .filter(([, value]) => value !== null && value !== '')
      .map(([name, value]) => `${name}=${plain(value)}`),
    ...Object.entries(sets)
      .filter(([, values]) => values.length > 0)
      .map(([name, values]) => `${name}=${values.join(',')}`),
  ].join(' ');
}

function plain(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What differs: a line a record, with every field that changed. */
export const diffColumns: readonly Column<DiffItem>[] = [
  { title: 'CHANGE', cell: (row) => row.change },
  { title: 'TYPE', cell: (row) => row.type },
  { title: 'KEY', cell: (row) => row.key, shrinkTo: 20 },
  {
    title: 'WHAT',
    cell: (row) =>
      [
        ...row.fields.map(({ name, before, after }) => `${name}: ${sideOf(before)} → ${sideOf(after)}`),
        ...(row.reason === null ? [] : [`(${row.reason})`]),
      ].join('; '),
    shrinkTo: 20,
  },
];

const sideOf = (value: JsonValue): string => (value === null ? '–' : plain(value));
