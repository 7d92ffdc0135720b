import type { JsonValue } from '#sonar/contracts/definition.ts';

/** An item as its author wrote it: text bare, rows as JSON. */
export function itemText(item: JsonValue): string | null {
  if (item === null || typeof item === 'string') return item;
  return JSON.stringify(item);
}
