// Records into a file, in flat memory. What is written is all there is or nothing: a page that does not come ends the
// command with a fault, and a file gets its name only when the last page is in it.
import { type FileHandle, mkdtemp, open, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
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
    throw notWritable(file, error);
  });
  /** Runs `use` with what writes to a new file of the folder; the file is whole when it returns. */
  const filled = async <T>(name: string, use: (write: Write) => Promise<T>): Promise<T> => {
    await using handle = await open(join(folder, name), 'wx').catch((error: unknown) => {
      throw notWritable(file, error);
    });
    return await use((text) =>
      written(handle, text).catch((error: unknown) => {
        throw notWritable(file, error);
      }),
    );
  };
  const named = (name: string, as: string): Promise<void> =>
    rename(join(folder, name), as).catch((error: unknown) => {
      throw notWritable(file, error);
    });
  const toStdout: Write = (text) => said(stdout, text);
  try {
    const columns = new Set<string>();
    const direct = format === 'jsonl' && target === null;
    const exported = direct
      ? await gather(pages, columns, toStdout)
      : await filled('lines', (write) => gather(pages, columns, write));
    if (format === 'jsonl') {
      if (target !== null) await named('lines', target);
      return exported;
    }
    const lines = join(folder, 'lines');
    if (target === null) await writeCsv(lines, columns, toStdout);
    else {
      await filled('cells', (write) => writeCsv(lines, columns, write));
      await named('cells', target);
    }
    return exported;
  } finally {
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

const notWritable = (file: string | null, error: unknown): SonarError =>
  new SonarError(
    'usage',
    `${file ?? 'a temporary file'} cannot be written, and nothing of it is kept: ${messageOf(error)}; make room, or ${file === null ? 'point TMPDIR at another disk' : 'name a file on another disk'}`,
    { cause: error },
  );

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
  await using spool = await open(lines);
  for await (const line of spool.readLines({ autoClose: false })) {
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

/** A short write is no fault of the file system's: it is gone on with. */
async function written(file: FileHandle, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}
