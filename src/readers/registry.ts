// All readers by name.
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import { type ReaderName, readerNames } from '#sonar/definition/reader-catalog.ts';
import { csvReader } from './csv.ts';
import { dnsxReader } from './dnsx.ts';
import { ffufReader } from './ffuf.ts';
import { gowitnessReader } from './gowitness.ts';
import { httpxReader } from './httpx.ts';
import { jsonReader } from './json.ts';
import { jsonlReader } from './jsonl.ts';
import { katanaReader } from './katana.ts';
import { linesReader } from './lines.ts';
import { masscanReader } from './masscan.ts';
import { naabuReader } from './naabu.ts';
import { nmapXmlReader } from './nmap-xml.ts';
import { nucleiReader } from './nuclei.ts';
import { paced } from './paced-source.ts';
import type { Reader } from './reader.ts';
import { sslscanReader } from './sslscan.ts';
import { subfinderReader } from './subfinder.ts';
import { testsslReader } from './testssl.ts';
import { tlsxReader } from './tlsx.ts';

const readers: Record<ReaderName, Reader> = {
  lines: linesReader,
  jsonl: jsonlReader,
  json: jsonReader,
  csv: csvReader,
  'nmap-xml': nmapXmlReader,
  naabu: naabuReader,
  masscan: masscanReader,
  tlsx: tlsxReader,
  sslscan: sslscanReader,
  testssl: testsslReader,
  subfinder: subfinderReader,
  dnsx: dnsxReader,
  httpx: httpxReader,
  katana: katanaReader,
  ffuf: ffufReader,
  nuclei: nucleiReader,
  gowitness: gowitnessReader,
};

export { readerNames };

/**
 * The reader that a compiled definition names; the compiler lets no other name pass. It takes what is not empty in
 * slices, with a turn for the rest of the process between them.
 */
export function readerFor(spec: Pick<ReadSpec, 'reader'>): Reader {
  const name = readerNames.find((known) => known === spec.reader);
  if (name === undefined) throw new Error(`there is no reader ${spec.reader}`);
  return { name, read: (bytes, spec) => readers[name].read(paced(bytes), spec) };
}
