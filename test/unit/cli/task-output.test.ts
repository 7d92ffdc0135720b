import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { CapturedSink, CommandLine } from './command-line.ts';
import { problem, route, ScriptedApi } from './scripted-api.ts';
import { scanDetail, scanIds, taskView } from './views.ts';

let api: ScriptedApi;
let cli: CommandLine;
let store: Server;
let stored: Buffer;
beforeEach(async () => {
  api = await new ScriptedApi(() => problem(404, 'not_found', 'nothing scripted')).start();
  cli = new CommandLine();
  cli.environment = { SONAR_API_URL: api.url, SONAR_TOKEN: 'secret-token' };
  stored = Buffer.from('a\u001b[2Jb\n\tc\n');
  store = createServer((_request, response) => response.end(stored));
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  await api.stop();
  store.closeAllConnections();
  store.close();
  cli.remove();
});

const id = scanIds.second;
const attempt = (changes: object = {}) => ({
  id,
  number: 1,
  tag: 't',
  worker: 'w1',
  placedAt: '2026-01-02T03:04:05.678Z',
  publishedAt: null,
  startedAt: '2026-01-02T03:04:06.678Z',
  endedAt: '2026-01-02T03:04:08.678Z',
  endReason: 'result',
  endDetail: null,
  accepted: true,
  outcome: 'failed',
  exitCode: 3,
  signal: null,
  failure: { code: 'command_failed', message: 'exited\nwith 3' },
  files: 1,
  finalization: { id, status: 'poisoned', error: 'no reader' },
  ...changes,
});
const head = (text: string) => Buffer.from(text).toString('base64');
const logs = {
  attempt: attempt(),
  stdout: { head: head('out\u001b]0;x\u0007\n'), size: 9, truncated: false, output: null },
  stderr: { head: head('why\n'), size: 9_999, truncated: true, output: null },
};
const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const file = (path = 'found.jsonl') => ({
  attempt: 1,
  output: 'found',
  path,
  size: stored.length,
  sha256: hash(stored),
  partial: false,
});
const place = () => ({ ...file(), url: `http://127.0.0.1:${(store.address() as AddressInfo).port}/x` });
const script = (files = [file()]) => {
  api.answer = route({
    [`GET /v1/tasks/${id}`]: { json: taskView({ id, status: 'Failed' }) },
    [`GET /v1/tasks/${id}/attempts`]: {
      json: {
        items: [
          attempt(),
          attempt({ number: 2, outcome: null, endReason: 'recovered', endDetail: 'worker_absent' }),
        ],
        next: null,
      },
    },
    [`GET /v1/tasks/${id}/logs`]: { json: logs },
    [`GET /v1/tasks/${id}/outputs`]: { json: { items: files, next: null } },
    [`GET /v1/tasks/${id}/outputs/place`]: { json: place() },
  });
};

test('show tells every attempt with its worker, its end and whether its result was read', async () => {
  script();
  const { out } = await cli.run('task', 'show', id);
  expect(out).toMatch(
    /1 +w1 +t +2026-01-02 03:04:05Z +2.0 s +failed +3 +1 +poisoned +command_failed: exited with 3/,
  );
  expect(out).toMatch(/2 +w1 .*recovered .*worker_absent/);
  expect(out).toContain(`sonar task logs ${id}`);
  expect(out).toContain(`sonar poison retry ${id}`);
});

test('logs go to the streams they came from, raw into a pipe and safe onto a terminal', async () => {
  script();
  const piped = await cli.run('task', 'logs', id);
  expect(piped.out).toBe('out\u001b]0;x\u0007\n');
  expect(piped.err).toContain('why\n');
  expect(piped.err).toContain('attempt 1 on w1: failed, exit 3; command_failed: exited with 3');
  expect(piped.err).toContain('of stderr only the first 4 of 9999 bytes are kept');
  cli.stdout = new CapturedSink(true);
  expect((await cli.run('task', 'logs', id)).out).toBe('out\n');
  cli.stdout = new CapturedSink();
  expect((await cli.run('task', 'logs', id, '--stderr', '--attempt', '1')).out).toBe('why\n');
  expect(api.asked.at(-1)?.url.search).toBe('?attempt=1');
  expect(JSON.parse((await cli.run('task', 'logs', id, '--json')).out)).toEqual(logs);
});

test('a file is the bytes in a pipe, safe lines on a terminal, and whole under its name with -o', async () => {
  script();
  expect((await cli.run('task', 'output', id)).out).toContain('found.jsonl');
  expect((await cli.run('task', 'output', id, '--output', 'found')).out).toBe(stored.toString('latin1'));
  cli.stdout = new CapturedSink(true);
  expect((await cli.run('task', 'output', id, '--path', 'found.jsonl')).out).toBe('ab\n c\n');
  cli.stdout = new CapturedSink();
  expect((await cli.run('task', 'output', id, '-o', 'here.txt')).code).toBe(0);
  expect(readFileSync(join(cli.folder, 'here.txt'))).toEqual(stored);
});

test('a file that is not what was accepted is no file: nothing is left under its name', async () => {
  script();
  const accepted = place();
  stored = Buffer.from('something else');
  api.answer = route({
    [`GET /v1/tasks/${id}/outputs`]: { json: { items: [file()], next: null } },
    [`GET /v1/tasks/${id}/outputs/place`]: { json: accepted },
  });
  writeFileSync(join(cli.folder, 'here.txt'), 'before');
  const { code, err } = await cli.run('task', 'output', id, '-o', 'here.txt');
  expect(code).toBe(1);
  expect(err).toContain('that were accepted');
  expect(readFileSync(join(cli.folder, 'here.txt'), 'utf8')).toBe('before');
});

test('of several files one is to be named, and one that is not there is said to be so', async () => {
  script([file('a'), file('b')]);
  expect(await cli.run('task', 'output', id, '--output', 'found')).toMatchObject({
    code: 2,
    err: expect.stringContaining('left 2 files in output "found"'),
  });
  expect((await cli.run('task', 'output', id, '--path', 'c')).err).toContain('left no file at "c"');
});

const event = (kind: string, changes: object = {}) => ({
  at: '2026-01-02T03:04:05.678Z',
  kind,
  step: 'ports',
  taskId: id,
  tag: 't',
  worker: 'w1',
  reason: null,
  exitCode: null,
  message: null,
  ...changes,
});

test('the story of a scan is followed until its end is told', async () => {
  const pages = [
    [event('scan_started', { step: null, taskId: null, worker: null, message: 'survey' }), event('placed')],
    [
      event('ended', { reason: 'failed', message: 'exited with 3\u001b[2J' }),
      event('scan_ended', { taskId: null, worker: null, reason: 'Completed' }),
    ],
  ];
  let asked = 0;
  api.answer = route({
    'GET /v1/scans/latest': { json: scanDetail() },
    [`GET /v1/scans/${scanIds.first}`]: () => ({
      json: scanDetail(asked > 0 ? { status: 'Completed' } : {}),
    }),
    [`GET /v1/scans/${scanIds.first}/events`]: ({ url }) => {
      asked += 1;
      const page = Number(url.searchParams.get('after') ?? 0);
      return { json: { items: pages[page] ?? [], next: String(Math.min(page + 1, pages.length)) } };
    },
  });
  const { code, out } = await cli.run('scan', 'logs', 'latest', '--follow');
  expect(code).toBe(0);
  expect(out.split('\n').map((line) => line.slice(22))).toEqual([
    'scan started: survey',
    `ports: placed on t  ${id}`,
    `ports: failed on w1: exited with 3  ${id}`,
    'scan ended Completed',
    '',
  ]);
});
