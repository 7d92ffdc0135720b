// Records into a file, in flat memory. What is written is all there is or nothing: a page that does not come ends the
// command with a fault, and a file gets its name only when the last page is in it.
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { InventoryItem } from '#sonar/contracts/inventory-api.ts';
import { isSonarError, messageOf, SonarError } from '#sonar/platform/errors.ts';
import { cellText, csvLine, defused } from './csv-cells.ts';
import type { ExportFormat } from './inventory-filter.ts';
import { safeJson } from './safe-text.ts';
import type { Sink } from './terminal.ts';

export interface RecordPage {
  items: readonly InventoryItem[];
  warnings: readonly string[];
}
export interface Exported {
  records: number;
  partial: number;
  warnings: readonly string[];
}

/** @param file null: `stdout`, which has seen a part of it when this throws. */
export async function exportRecords(
  pages: AsyncIterable<RecordPage>,
  format: ExportFormat,
  file: string | null,
  stdout: Sink,
): Promise<Exported> {
  const target = file === null ? null : resolve(file);
  const folder = await mkdtemp(
    target === null ? join(tmpdir(), 'sonar-export-') : join(dirname(target), `.${basename(target)}.`),
  ).catch((error: unknown) => {
    throw new SonarError('usage', `${file ?? 'a temporary folder'} cannot be written: ${messageOf(error)}`);
  });
  try {
    const lines = join(folder, 'lines');
    const columns = new Set<string>();
    const direct = format === 'jsonl' && target === null;
    const spool = direct ? null : createWriteStream(lines);
    const exported = await gather(pages, columns, (text) =>
      spool === null ? said(stdout, text) : written(spool, text),
    );
    if (spool !== null) await ended(spool);
    if (format === 'jsonl') {
      if (target !== null) await rename(lines, target);
      return exported;
    }
    const cells = join(folder, 'cells');
    const out = target === null ? null : createWriteStream(cells);
    await writeCsv(lines, columns, (text) => (out === null ? said(stdout, text) : written(out, text)));
    if (out !== null && target !== null) {
      await ended(out);
      await rename(cells, target);
    }
    return exported;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Write = (text: string) => Promise<void>;

/** Every record as a line of JSON; gathers the names of their fields and sets. */
async function gather(
  pages: AsyncIterable<RecordPage>,
  columns: Set<string>,
  write: Write,
): Promise<Exported> {
  let records = 0;
  let partial = 0;
  const warnings = new Set<string>();
  for await (const page of complete(pages, () => records)) {
    for (const warning of page.warnings) warnings.add(warning);
    for (const item of page.items) {
      records += 1;
      if (item.partial) partial += 1;
      for (const names of [item.fields, item.sets])
        for (const name of Object.keys(names)) if (columns.size < maxColumns) columns.add(name);
    }
    if (page.items.length > 0) await write(page.items.map((item) => `${safeJson(item, 0)}\n`).join(''));
  }
  return { records, partial, warnings: [...warnings] };
}

/** @throws what the pages throw, with how much there was before it: nobody must take a part for the whole. */
async function* complete(pages: AsyncIterable<RecordPage>, records: () => number): AsyncIterable<RecordPage> {
  try {
    yield* pages;
  } catch (error) {
    if (!isSonarError(error)) throw error;
    throw new SonarError(
      error.code,
      `the export is not complete, it ended after ${records()} records: ${error.message}`,
      { cause: error },
    );
  }
}

// Names of fields come from targets, too: what is beyond these goes as JSON into one last column.
const maxColumns = 200;
const fixedColumns = ['record', 'key', 'partial', 'firstSeen', 'lastSeen'];
const restColumn = 'more';
const linesAtOnce = 500;

async function writeCsv(lines: string, names: ReadonlySet<string>, write: Write): Promise<void> {
  const columns = [...names].toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const taken = [...fixedColumns, restColumn];
  const titles = columns.map((name) => defused(taken.includes(name) ? `field.${name}` : name));
  let text = csvLine([...fixedColumns, ...titles, restColumn]);
  let gathered = 0;
  for await (const line of createInterface({ input: createReadStream(lines), crlfDelay: Infinity })) {
    text += csvLine(cellsOf(JSON.parse(line) as InventoryItem, columns, names));
    gathered += 1;
    if (gathered % linesAtOnce !== 0) continue;
    await write(text);
    text = '';
  }
  await write(text);
}

function cellsOf(item: InventoryItem, columns: readonly string[], names: ReadonlySet<string>): string[] {
  // A field hides a set of the same name, as everywhere. A Map: names such as `__proto__` are names like others.
  const values = new Map([...Object.entries(item.sets), ...Object.entries(item.fields)]);
  const rest = [...values].filter(([name]) => !names.has(name));
  return [
    defused(item.type),
    defused(item.key),
    String(item.partial),
    item.firstSeenAt,
    item.lastSeenAt,
    ...columns.map((name) => cellText(values.get(name))),
    rest.length === 0 ? '' : defused(JSON.stringify(Object.fromEntries(rest))),
  ];
}

/** To a reader that is slower than the api; a terminal is shown no control characters. */
export async function said(stdout: Sink, text: string): Promise<void> {
  if (stdout.isTerminal) stdout.write(text.replace(/[^\P{C}\r\n]/gu, '\ufffd'));
  else if (text !== '') await stdout.writeBytes(Buffer.from(text));
}

function written(stream: WriteStream, text: string): Promise<void> {
  const { promise, resolve: done, reject } = Promise.withResolvers<void>();
  stream.write(text, (error) => (error ? reject(error) : done()));
  return promise;
}

function ended(stream: WriteStream): Promise<void> {
  const { promise, resolve: done, reject } = Promise.withResolvers<void>();
  stream.once('error', reject);
  stream.end(() => done());
  return promise;
}
