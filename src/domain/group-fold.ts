// All rows of one group as one item: `{ip: '192.0.2.1', port: [22, 80], …}`.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import { canonicalJson } from './inventory-fold.ts';

/** UTF-8 bytes of one group's item: larger ones no command line could take, and a task carries its item. */
export const maxGroupBytes = 256 * 1024;

/** Takes the rows of one group in their order. */
export class GroupFold {
  readonly #field: string;
  readonly #value: JsonValue;
  /** Field → canonical text → value, each in the order in which it came first. */
  readonly #others = new Map<string, Map<string, JsonValue>>();
  #bytes = 0;

  constructor(field: string, value: JsonValue) {
    this.#field = field;
    this.#value = value;
  }

  /** Values that are null or empty are passed over. */
  add(row: Row): void {
    for (const [field, value] of Object.entries(row)) {
      if (field === this.#field || value === null || value === '' || this.tooLarge) continue;
      const seen = this.#others.get(field) ?? new Map<string, JsonValue>();
      this.#others.set(field, seen);
      const text = canonicalJson(value);
      if (seen.has(text)) continue;
      seen.set(text, value);
      this.#bytes += Buffer.byteLength(text) + 1;
    }
  }

  get tooLarge(): boolean {
    return this.#bytes > maxGroupBytes;
  }

  /** The shared field first, then the distinct values of every other one. */
  get item(): Row {
    const lists = [...this.#others].map(([field, seen]): [string, JsonValue] => [field, [...seen.values()]]);
    return Object.fromEntries([[this.#field, this.#value], ...lists]);
  }
}
