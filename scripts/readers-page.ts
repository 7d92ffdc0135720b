// The text of docs/readers.md: the reader catalog, what is known of each tool's output and from where, and for each
// reader an example that the reader itself has read. A test compares the file with it.
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import { type ReaderName, readerCatalog, readerNames } from '#sonar/definition/reader-catalog.ts';
import { recordKey } from '#sonar/domain/records.ts';
import { builtInTypes } from '#sonar/domain/records-identities.ts';
import { readerFor } from '#sonar/readers/registry.ts';
import { type ReaderNotes, readerNotes } from './reader-notes.ts';

/** @param sampleOf the bytes of a file in test/fixtures/readers */
export async function readersPage(sampleOf: (file: string) => Buffer): Promise<string> {
  const sections: string[] = [];
  for (const name of readerNames) sections.push(await sectionOf(name, readerNotes[name], sampleOf));
  return `${head}\n${recordsTable()}\n\n${[shared, ...sections].join('\n\n')}\n`;
}

const head = `<!-- Made by \`node scripts/write-readers-page.ts\` of the reader catalog and scripts/reader-notes.ts; a test compares. -->
# Readers

A reader turns the bytes of an output into *rows*, and rows into *records*. \`outputs.x.read\` of a definition names it; \`foreach\` and \`inputs\` pick fields of its rows; its records go into the inventory. Try one here, without a scan:

    sonar parse web.jsonl --as httpx

One bad record is counted, sampled and shown, and costs none of its neighbours. A line or an object longer than 1 MiB is a bad record. A file that is cut is read as far as it goes, with a warning. Bytes that are no UTF-8, NUL and lone surrogates become U+FFFD. Memory stays flat whatever the size of the file.

## Records

A record's key is its natural identity, in one spelling whatever the tool's; a key longer than 512 bytes is replaced by its SHA-256.
`;

const keyNotes: Record<keyof typeof builtInTypes, string> = {
  domain: 'lower case, IDN as `xn--`, without trailing dot',
  address: 'RFC 5952; IPv4 inside IPv6 is IPv4',
  dns: '`NAME TYPE VALUE`; an address as name stands for its reverse name; MX without its preference',
  service: '`ADDRESS/PROTOCOL/PORT`; tcp where no protocol is given',
  endpoint: 'URL without user information, fragment and the scheme’s own port',
  certificate: 'lower case, without colons',
  technology: '`PARENT NAME`, the name in lower case; the parent is a URL, a host or a service',
  finding: '`SOURCE RULE TARGET LOCATION`; of a URL as location only the origin is normalized',
};

const recordsTable = (): string =>
  [
    '| record | fields of its key | the key |',
    '| --- | --- | --- |',
    ...Object.entries(builtInTypes).map(
      ([type, { required, optional }]) =>
        `| ${type} | ${[...required, ...optional.map((field: string) => `${field} (optional)`)].join(', ')} | ${keyNotes[type as keyof typeof keyNotes]} |`,
    ),
  ].join('\n');

const shared = `## Rows

A field has one name in all readers: \`host\`, \`ip\`, \`port\`, \`protocol\`, \`url\`, \`scheme\`, \`path\`, \`status\`, \`title\`, \`server\`, \`technologies\`, … So \`foreach: {in: resolve.dns, pick: host}\` and \`foreach: {in: web.web, pick: url}\` work with any reader whose rows have the field. A row without the field, or with null in it, is passed over. After the documented fields, rows of the tools carry what else the tool wrote (dashes in names as underscores), but no whole requests, pages or pictures.

JSON is read in whichever form it comes: one object a line, an array (also with a trailing comma, nested, printed over many lines, or cut short), objects one after another. \`jsonl\` alone insists on lines. A banner before the JSON costs one bad record a line.

Where the notes say *made after the documentation, not from a run*, the tool was not at hand: the samples in \`test/fixtures/readers\` were written after the fields that the named pages and sources state.`;

async function sectionOf(
  name: ReaderName,
  notes: ReaderNotes,
  sampleOf: (file: string) => Buffer,
): Promise<string> {
  const { reads, rowFields, records, ownRecords } = readerCatalog[name];
  const events = await readAll(name, notes.spec, sampleOf(notes.example));
  return [
    `## ${name}`,
    `Reads ${reads}.`,
    ...(notes.forms.length === 0 ? [] : [notes.forms.map((form) => `- ${form}`).join('\n')]),
    rowFields === null
      ? '**Rows**: the fields that the file has.'
      : `**Rows**\n\n| field | what it holds |\n| --- | --- |\n${Object.entries(rowFields)
          .map(([field, help]) => `| \`${field}\` | ${help} |`)
          .join('\n')}`,
    ownRecords
      ? `**Records**: ${records.join(', ')}.`
      : '**Records**: by the definition: `read: {format: ' +
        `${name}, record: TYPE, fields: {RECORD FIELD: ROW FIELD}}\`. Without \`fields\` the row’s own names count.`,
    `**Not read**: ${notes.omits}`,
    exampleOf(notes, events, sampleOf(notes.example)),
  ].join('\n\n');
}

async function readAll(reader: ReaderName, spec: Partial<ReadSpec>, bytes: Buffer): Promise<ReadEvent[]> {
  const full = { reader, record: null, fields: {}, ...spec };
  const events: ReadEvent[] = [];
  async function* source(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(bytes);
  }
  for await (const event of readerFor(full).read(source(), full)) events.push(event);
  return events;
}

/** Lines of the sample that are shown; longer ones are cut. */
const shownLines = 3;
const shownWidth = 160;

function exampleOf({ example, spec }: ReaderNotes, events: ReadEvent[], bytes: Buffer): string {
  const lines = bytes.toString('utf8').trimEnd().split('\n');
  const input = lines
    .slice(0, shownLines)
    .map((line) => (line.length > shownWidth ? `${line.slice(0, shownWidth)}…` : line));
  const row = events.find((event) => event.kind === 'row');
  const keys = events
    .flatMap((event) => (event.kind === 'row' || event.kind === 'records' ? event.records : []))
    .flatMap((draft) => {
      const keyed = recordKey(draft);
      return keyed.ok ? [`${keyed.type} ${keyed.key}`] : [];
    });
  const mapping =
    spec.record === undefined
      ? ''
      : ` with \`record: ${spec.record}\`, \`fields: ${JSON.stringify(spec.fields)}\``;
  return [
    `**Example**, \`test/fixtures/readers/${example}\`${mapping}:`,
    fenced('', [...input, ...(lines.length > shownLines ? ['…'] : [])]),
    'Its first row:',
    fenced('json', [JSON.stringify(row?.row ?? {}, null, 1).replaceAll(/\n\s*/g, ' ')]),
    `Its records: ${[...new Set(keys)]
      .slice(0, 6)
      .map((key) => `\`${key}\``)
      .join(', ')}${new Set(keys).size > 6 ? ', …' : ''}`,
  ].join('\n\n');
}

const fenced = (language: string, lines: string[]): string => ['```' + language, ...lines, '```'].join('\n');
