// Readers of tools that write JSON: the form of the file is found, each object becomes rows and records.
import type { Row } from '#sonar/contracts/definition.ts';
import type { ReadEvent, RecordDraft } from '#sonar/contracts/records.ts';
import type { ReaderName } from '#sonar/definition/reader-catalog.ts';
import { builtInTypes } from '#sonar/domain/records-identities.ts';
import { safeSample, storableText } from '#sonar/domain/records-storable.ts';
import { jsonItems } from './json-rows.ts';
import { tooLong } from './lines.ts';
import type { ReadItem } from './read-item.ts';
import type { Reader } from './reader.ts';

/** A row with its records; without a row, records that belong to none. */
export interface ToolRow {
  row: Row | null;
  records: RecordDraft[];
}

export interface Tool {
  name: ReaderName;
  /** The key of the array where the tool writes one object with everything. */
  wrapper?: string;
  /** The rows of one object, or why it is none of this tool's. */
  rowsOf: (value: Row) => ToolRow[] | string;
  /** The rows of a line of the tool's plain output; null when the line is none. */
  plain?: (line: string) => ToolRow[] | null;
  /** True of what the tool writes beside its results. */
  isNoise?: (text: string) => boolean;
}

export const toolReader = (tool: Tool): Reader => ({
  name: tool.name,
  read: (bytes) => toolEvents(tool, jsonItems(bytes, tool.wrapper ?? null)),
});

export async function* toolEvents(tool: Tool, items: AsyncIterable<ReadItem>): AsyncGenerator<ReadEvent> {
  const ordinals = { row: 0, records: 0, bad: 0 };
  const said = new SaidBefore();
  for await (const item of items) {
    if (item.kind === 'warning') {
      yield item;
      continue;
    }
    if (tool.isNoise?.(item.text) === true) continue;
    const rows = item.kind === 'object' ? tool.rowsOf(item.value) : (plainRows(tool, item) ?? item.reason);
    if (typeof rows === 'string') {
      yield { kind: 'bad', ordinal: ordinals.bad, reason: rows, sample: safeSample(item.text) };
      ordinals.bad += 1;
      continue;
    }
    for (const { row, records: stated } of rows) {
      const records = said.news(stated);
      if (row === null) {
        yield { kind: 'records', ordinal: ordinals.records, records };
        ordinals.records += 1;
      } else {
        yield { kind: 'row', ordinal: ordinals.row, row, records };
        ordinals.row += 1;
      }
    }
  }
}

/** Objects arrive storable, and rows are made of their values; a plain line is made so here. */
const plainRows = (tool: Tool, { text, reason }: { text: string; reason: string }): ToolRow[] | null =>
  text.startsWith('{') || reason === tooLong ? null : (tool.plain?.(storableText(text.trim())) ?? null);

/** More would catch repetition that lies further apart, and take memory from a small process. */
const maxSaid = 1_000;

/** The hosts, addresses and services that every row of a tool repeats: stated again only where something changed. */
class SaidBefore {
  /** What was said last of each; dropped when it grows, which costs repetition and no record. */
  readonly #last = new Map<string, string>();

  news(records: RecordDraft[]): RecordDraft[] {
    return records.filter((record) => {
      const { type, fields } = record;
      if (type !== 'domain' && type !== 'address' && type !== 'service') return true;
      const identity = builtInTypes[type].required.map((field) => fields[field]);
      const key = JSON.stringify([type, fields.protocol, ...identity]);
      const text = JSON.stringify(record);
      if (this.#last.get(key) === text) return false;
      if (this.#last.size >= maxSaid) this.#last.clear();
      this.#last.set(key, text);
      return true;
    });
  }
}
