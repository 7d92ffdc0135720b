// CSV with a header: one row for each record, its fields under the header's names, as text.
import type { Row } from '#sonar/contracts/definition.ts';
import { storableObject } from '#sonar/domain/records-storable.ts';
import { type CsvRecord, CsvRecords, delimiterOf } from './csv-records.ts';
import { formatEvents } from './format-events.ts';
import { linesOf } from './line-stream.ts';
import type { ReadItem } from './read-item.ts';
import type { Reader } from './reader.ts';

export const csvReader: Reader = {
  name: 'csv',
  read: (bytes, spec) => formatEvents(csvItems(bytes), spec),
};

async function* csvItems(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ReadItem> {
  let names: string[] | null = null;
  for await (const record of csvRecords(bytes)) {
    if (record.kind === 'bad') yield record;
    else if (names === null) names = namesOf(record.fields);
    else yield { kind: 'object', value: rowOf(names, record.fields), text: record.text };
  }
}

async function* csvRecords(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<CsvRecord> {
  let records: CsvRecords | null = null;
  for await (const line of linesOf(bytes)) {
    records ??= new CsvRecords(delimiterOf(line.kind === 'line' ? line.text : line.sample));
    yield* records.push(line);
  }
  yield* records?.end() ?? [];
}

/** A column without a name of its own gets one by its position, so that no value is lost. */
function namesOf(header: readonly string[]): string[] {
  const names: string[] = [];
  for (const [index, cell] of header.entries()) {
    const name = cell.trim();
    names.push(name === '' || names.includes(name) ? columnName(index) : name);
  }
  return names;
}

const columnName = (index: number): string => `column_${index + 1}`;

const rowOf = (names: readonly string[], fields: readonly string[]): Row =>
  storableObject(
    Object.fromEntries(fields.map((field, index) => [names[index] ?? columnName(index), field])),
  );
