// All readers by name.
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import { type ReaderName, readerNames } from '#sonar/definition/reader-catalog.ts';
import { csvReader } from './csv.ts';
import { jsonReader } from './json.ts';
import { jsonlReader } from './jsonl.ts';
import { linesReader } from './lines.ts';
import { nmapXmlReader } from './nmap-xml.ts';
import type { Reader } from './reader.ts';

const readers: Record<ReaderName, Reader> = {
  lines: linesReader,
  jsonl: jsonlReader,
  json: jsonReader,
  csv: csvReader,
  'nmap-xml': nmapXmlReader,
};

export { readerNames };

/** The reader that a compiled definition names; the compiler lets no other name pass. */
export function readerFor(spec: Pick<ReadSpec, 'reader'>): Reader {
  const name = readerNames.find((known) => known === spec.reader);
  if (name === undefined) throw new Error(`there is no reader ${spec.reader}`);
  return readers[name];
}
