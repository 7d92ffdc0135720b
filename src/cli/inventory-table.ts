import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { InventoryItem } from '#sonar/contracts/scan-api.ts';
import { formatTime } from './figures.ts';
import type { Column } from './table.ts';

/** Columns of an inventory: what it is, which one, and all that is known of it. */
export const inventoryColumns: readonly Column<InventoryItem>[] = [
  { title: 'TYPE', cell: (row) => row.type },
  { title: 'KEY', cell: (row) => row.key, shrinkTo: 20 },
  { title: 'KNOWN', cell: knownOf, shrinkTo: 20 },
  { title: 'LAST SEEN', cell: (row) => formatTime(row.lastSeenAt) },
];

/** `field=value` for every field and set; a partial one comes from a command that did not complete. */
function knownOf(row: InventoryItem): string {
  const fields = Object.entries(row.fields).filter(([, value]) => value !== null && value !== '');
  const sets = Object.entries(row.sets).filter(([, values]) => values.length > 0);
  return [
    ...(row.partial ? ['(partial)'] : []),
    ...fields.map(([name, value]) => `${name}=${plain(value)}`),
    ...sets.map(([name, values]) => `${name}=${values.join(',')}`),
  ].join(' ');
}

function plain(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
