// An export is whole or it is none.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { cellText } from '#sonar/cli/csv-cells.ts';
import { exportRecords, type RecordPage } from '#sonar/cli/export-records.ts';
import type { InventoryItem } from '#sonar/contracts/inventory-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { parseCsv } from '../../fixtures/strict-csv.ts';

let folder: string;
let file: string;
let said: string;
const stdout = {
  write: (text: string) => {
    said += text;
  },
  writeBytes: (bytes: Uint8Array) => {
    said += Buffer.from(bytes).toString();
    return Promise.resolve();
  },
  isTerminal: false,
  size: () => ({ columns: 80, rows: 24 }),
};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sonar-test-'));
  file = join(folder, 'out');
  said = '';
});
afterEach(() => rmSync(folder, { recursive: true }));

const item = (key: string, more: Partial<InventoryItem> = {}): InventoryItem => ({
  type: 'endpoint',
  key,
  fields: {},
  sets: {},
  partial: false,
  firstSeenAt: '2026-01-01T00:00:00.000Z',
  lastSeenAt: '2026-01-02T00:00:00.000Z',
  ...more,
});
async function* pagesOf(items: readonly InventoryItem[], fault?: Error): AsyncGenerator<RecordPage> {
  for (const one of items) {
    yield { items: [one], warnings: ['w'] };
    yield { items: [], warnings: [] };
  }
  if (fault) throw fault;
}
const away = new SonarError('unreachable', 'the api went away');

test('of a file, what is there is all: it gets its name last, over one of before', async () => {
  writeFileSync(file, 'old');
  const items = [item('a', { partial: true }), item('b', { fields: { t: '\u202e\u2028\u0085' } })];
  expect(await exportRecords(pagesOf(items), 'jsonl', file, stdout)).toEqual({
    records: 2,
    partial: 1,
    warnings: ['w'],
  });
  const text = readFileSync(file, 'utf8');
  expect(
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual(items);
  expect(/[\u0080-\u009f\u2028\u202e]/.test(text)).toBe(false);
  expect(readdirSync(folder)).toEqual(['out']);
});

test.each(['jsonl', 'csv'] as const)(
  'an export as %s that is cut leaves the old file, nothing beside it, and says how far it came',
  async (format) => {
    writeFileSync(file, 'old');
    await expect(exportRecords(pagesOf([item('a')], away), format, file, stdout)).rejects.toMatchObject({
      code: 'unreachable',
      message: 'the export is not complete, it ended after 1 records: the api went away',
    });
    expect(readFileSync(file, 'utf8')).toBe('old');
    expect(readdirSync(folder)).toEqual(['out']);
  },
);

test('a place that cannot be written is told before anything is asked', async () => {
  await expect(
    exportRecords(pagesOf([item('a')]), 'jsonl', join(folder, 'none', 'out'), stdout),
  ).rejects.toMatchObject({ code: 'usage' });
});

test('CSV has a column a field, also of later records, and what is named as a column of its own', async () => {
  const items = [
    item('a', { fields: { key: 'inner', title: '=1' }, sets: { names: ['x', '=y'] } }),
    item('b', { fields: { status: 200, more: [1] } }),
  ];
  await exportRecords(pagesOf(items), 'csv', null, stdout);
  expect(parseCsv(said)).toEqual([
    [
      'record',
      'key',
      'partial',
      'firstSeen',
      'lastSeen',
      'field.key',
      'field.more',
      'names',
      'status',
      'title',
      'more',
    ],
    [
      'endpoint',
      'a',
      'false',
      items[0]?.firstSeenAt,
      items[0]?.lastSeenAt,
      'inner',
      '',
      '["x","=y"]',
      '',
      "'=1",
      '',
    ],
    ['endpoint', 'b', 'false', items[1]?.firstSeenAt, items[1]?.lastSeenAt, '', '[1]', '', '200', '', ''],
  ]);
});

test('names of fields beyond the bound go into the last column', async () => {
  const fields = Object.fromEntries(Array.from({ length: 260 }, (_, n) => [`f${n}`, n]));
  await exportRecords(pagesOf([item('a', { fields })]), 'csv', null, stdout);
  const [header, row] = parseCsv(said);
  expect(header).toHaveLength(206);
  expect(Object.keys(JSON.parse(row?.at(-1) ?? '') as object)).toHaveLength(60);
});

test('whatever records hold, the CSV reads back to the same cells', async () => {
  const name = fc.constantFrom('a', '=b', '__proto__', 'key', 'c d');
  const items = fc.array(
    fc.record({
      key: fc.string({ unit: 'grapheme' }),
      fields: fc.dictionary(name, fc.jsonValue() as fc.Arbitrary<never>, { noNullPrototype: true }),
    }),
    { minLength: 1, maxLength: 4 },
  );
  await fc.assert(
    fc.asyncProperty(items, async (list) => {
      said = '';
      const records = list.map(({ key, fields }) => item(key, { fields }));
      await exportRecords(pagesOf(records), 'csv', null, stdout);
      const [header = [], ...rows] = parseCsv(said);
      expect(rows.map((row) => row[1])).toEqual(records.map(({ key }) => cellText(key)));
      for (const field of ['a', '__proto__', 'c d']) {
        const column = header.indexOf(field);
        const expected = records.map((record) =>
          cellText(Object.getOwnPropertyDescriptor(record.fields, field)?.value as never),
        );
        expect(column === -1 ? expected : rows.map((row) => row[column])).toEqual(expected);
      }
    }),
    { seed: 20_265, numRuns: 60 },
  );
});

test.each(['jsonl', 'csv'])(
  'nothing is left of a file that the disk does not take, and the way out is named: %s',
  (format) => {
    writeFileSync(file, 'old');
    const script = require.resolve('./export-to-folder.ts');
    // A limit on the size of files stands for the full disk: EFBIG takes the way of ENOSPC.
    const end = spawnSync(
      '/bin/bash',
      [
        '-c',
        'ulimit -f 16; exec "$@"',
        'bash',
        process.execPath,
        '--disable-warning=ExperimentalWarning',
        script,
        folder,
        format,
      ],
      { encoding: 'utf8', timeout: 8_000 },
    );
    expect([end.stderr, end.status]).toEqual(['', 0]);
    expect(end.stdout).toMatch(
      /^usage: .*\/out cannot be written, and nothing of it is kept: EFBIG.*make room/,
    );
    expect([readdirSync(folder), readFileSync(file, 'utf8')]).toEqual([['out'], 'old']);
  },
);
