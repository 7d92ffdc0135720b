// What the language must know of the readers: their names, the fields of their rows, and whether they make
// records of their own. The readers themselves are in `readers/`; docs/readers.md is made of this.
import type { RecordType } from '#sonar/contracts/records.ts';
import { nameReaders, portReaders } from './reader-catalog-network.ts';
import { webReaders } from './reader-catalog-web.ts';

export interface ReaderEntry {
  /** What it reads, in a line for people. */
  reads: string;
  /** Row field → what it holds; null where the rows are whatever the file holds. */
  rowFields: Readonly<Record<string, string>> | null;
  /** Its rows make records by themselves, so `record` and `fields` have no place. */
  ownRecords: boolean;
  /** The types of those records. */
  records: readonly RecordType[];
}

const format = { ownRecords: false, records: [] } as const;

export const readerCatalog = {
  lines: {
    reads: 'text, one row a line',
    rowFields: { line: 'The line without its end.' },
    ...format,
  },
  jsonl: { reads: 'JSON Lines, one object a line', rowFields: null, ...format },
  json: { reads: 'JSON in any form: an array, objects one after another, lines', rowFields: null, ...format },
  csv: { reads: 'CSV with a header', rowFields: null, ...format },
  ...portReaders,
  ...nameReaders,
  ...webReaders,
} as const satisfies Record<string, ReaderEntry>;

export type ReaderName = keyof typeof readerCatalog;
export const readerNames = Object.keys(readerCatalog) as ReaderName[];

export const readerEntry = (name: string): ReaderEntry | null =>
  Object.hasOwn(readerCatalog, name) ? readerCatalog[name as ReaderName] : null;
