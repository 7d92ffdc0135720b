// The inventory's commands: what they ask, what they show, and that a part is never taken for the whole.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandLine } from './command-line.ts';
import { route, type ScriptedApi } from './scripted-api.ts';
import { useScriptedCli } from './scripted-cli.ts';
import { scanIds } from './views.ts';

const scripted = useScriptedCli();
let api: ScriptedApi;
let cli: CommandLine;
beforeEach(() => {
  ({ api, cli } = scripted);
});

const item = (key: string, partial = false) => ({
  type: 'endpoint',
  key,
  fields: { title: '=cmd' },
  sets: {},
  partial,
  firstSeenAt: '2026-01-01T00:00:00.000Z',
  lastSeenAt: '2026-01-02T00:00:00.000Z',
});
const pages = (fails = false) =>
  route({
    'GET /v1/inventory': ({ url }) =>
      url.searchParams.get('after') === null
        ? { json: { items: [item('a')], next: 'c1', warnings: ['1 result(s) are poisoned'] } }
        : fails
          ? 'hang up'
          : { json: { items: [item('b', true)], next: null, warnings: [] } },
  });

test('filters go to the api as they were meant', async () => {
  api.answer = pages();
  const words =
    '--type login --contains x --field a=b --field c=d=e --seen-since 2026-01-31 --no-partial --limit 1';
  const { code, out, err } = await cli.run('inventory', 'list', '--scan', 'latest', ...words.split(' '));
  expect(code).toBe(0);
  expect(Object.fromEntries(api.asked[0]?.url.searchParams ?? [])).toMatchObject({
    type: 'login',
    contains: 'x',
    seenSince: '2026-01-31T00:00:00.000Z',
    partial: 'false',
    scan: 'latest',
  });
  expect(api.asked[0]?.url.searchParams.getAll('field')).toEqual(['a=b', 'c=d=e']);
  expect(out).toContain('2026-01-01 00:00:00Z');
  expect(err).toContain('warning: 1 result(s) are poisoned');
});

test.each(['--seen-since soon', '--type No', '--field x'])('%s is a fault of usage', async (words) => {
  expect((await cli.run('inventory', 'list', ...words.split(' '))).code).toBe(2);
  expect(api.asked).toEqual([]);
});

test('an age is a time before now', async () => {
  api.answer = pages();
  const before = Date.now();
  await cli.run('inventory', 'list', '--new-since', '7d');
  const asked = Date.parse(api.asked[0]?.url.searchParams.get('newSince') ?? '');
  expect(Math.abs(before - 7 * 86_400_000 - asked)).toBeLessThan(60_000);
});

test.each([['inventory export'], ['scan export latest']])(
  '%s writes a file and says what is in it',
  async (words) => {
    api.answer = pages();
    const { code, out } = await cli.run(...words.split(' '), '--format', 'csv', '-o', 'all.csv');
    expect(code).toBe(0);
    expect(out).toContain('2 records, 1 of them partial');
    expect(out).toContain('warning: 1 result(s) are poisoned');
    expect(readFileSync(join(cli.folder, 'all.csv'), 'utf8')).toContain(
      "endpoint,b,true,2026-01-01T00:00:00.000Z,2026-01-02T00:00:00.000Z,'=cmd,",
    );
  },
);

test('an export whose api goes away leaves no file and exits as unreachable', async () => {
  api.answer = pages(true);
  const { code, err } = await cli.run('inventory', 'export', '-o', 'all.jsonl');
  expect(code).toBe(6);
  expect(err).toContain('the export is not complete, it ended after 1 records');
  expect(existsSync(join(cli.folder, 'all.jsonl'))).toBe(false);
});

test('a comparison shows what changed, and what cannot be judged', async () => {
  const scan = {
    id: scanIds.first,
    name: 'n',
    definition: 'd',
    status: 'Completed',
    createdAt: '2026-01-01T00:00:00Z',
  };
  api.answer = route({
    'GET /v1/inventory/diff': {
      json: {
        from: scan,
        to: scan,
        next: null,
        unjudged: [{ step: 'probe', reason: 'in the later scan `probe` has 1 failed task(s)' }],
        items: [
          {
            change: 'changed',
            type: 'endpoint',
            key: 'a',
            fields: [{ name: 'title', before: null, after: 'x\u001b[2J' }],
            reason: null,
          },
          { change: 'unknown', type: 'endpoint', key: 'b', fields: [], reason: 'why' },
        ],
      },
    },
  });
  const { code, out, err } = await cli.run('inventory', 'diff', scanIds.first, 'latest');
  expect(code).toBe(0);
  expect(out).toMatch(/changed +endpoint +a +title: – → x\n/);
  expect(out).toMatch(/unknown +endpoint +b +\(why\)/);
  expect(err).toContain('in the later scan `probe` has 1 failed task(s)');
  expect(
    (await cli.run('inventory', 'diff', '--definition', 'd', '--all')).out.trim().split('\n'),
  ).toHaveLength(2);
  expect((await cli.run('inventory', 'diff', 'latest')).code).toBe(2);
});

test('an import is asked for until it is over, and one that is there already says so', async () => {
  writeFileSync(join(cli.folder, 'list.txt'), 'a.example.com\n');
  const view = {
    id: scanIds.first,
    name: 'list.txt',
    created: true,
    records: 0,
    badRecords: 0,
    warnings: [],
    error: null,
    createdAt: '2026-01-01T00:00:00Z',
    finishedAt: null,
    importedBy: 'x',
  };
  const answers = [
    { ...view, status: 'due' },
    { ...view, status: 'done', created: false, records: 1, badRecords: 1, warnings: ['bad one'] },
  ];
  api.answer = route({
    'POST /v1/files': { json: { files: [null] } },
    'POST /v1/inventory/imports': () => ({
      json: answers.shift() ?? { ...view, status: 'done', created: false },
    }),
  });
  const { code, out } = await cli.run('inventory', 'import', 'list.txt', '--type', 'domain');
  expect(code).toBe(0);
  expect(out).toBe('list.txt: 1 record, 1 bad\nwarning: bad one\n');
  expect(api.asked.at(-1)?.body).toMatchObject({
    name: 'list.txt',
    read: { format: 'lines', record: 'domain' },
  });
  expect((await cli.run('inventory', 'import', 'list.txt', '--type', 'domain')).out).toContain(
    'nothing was added',
  );
  expect((await cli.run('inventory', 'import', 'list.txt')).code).toBe(2);
});
