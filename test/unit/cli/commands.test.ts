import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ScanStatus } from '#sonar/contracts/states.ts';
import type { CommandLine } from './command-line.ts';
import { problem, route, type ScriptedApi } from './scripted-api.ts';
import { useScriptedCli } from './scripted-cli.ts';
import { scanDetail, scanIds, scanView, stepView, taskView } from './views.ts';

const scripted = useScriptedCli();
let api: ScriptedApi;
let cli: CommandLine;
beforeEach(() => {
  ({ api, cli } = scripted);
});

test.each<[ScanStatus, number]>([
  ['Completed', 0],
  ['CompletedWithErrors', 3],
  ['Failed', 4],
  ['Cancelled', 5],
])('a scan that ends %s makes watch and start --wait exit %i', async (status, code) => {
  api.answer = route({
    'POST /v1/scans': { status: 201, json: scanView() },
    [`GET /v1/scans/${scanIds.first}`]: {
      json: scanDetail({ status, finishedAt: '2026-01-02T03:05:05.678Z' }),
    },
  });
  expect((await cli.run('scan', 'watch', scanIds.first)).code).toBe(code);
  const waited = await cli.run('scan', 'start', 'survey', '--allow', '127.0.0.1', '--wait');
  expect(waited.code).toBe(code);
  expect(waited.out).toContain(`${status} after 1:00: 3 tasks done; 0 failed; no records`);
});

test('a start sends inputs, scope and key with the token, and tells how to go on', async () => {
  writeFileSync(join(cli.folder, 'hosts.txt'), 'a.test\nb.test\n');
  api.answer = route({ 'POST /v1/scans': { status: 201, json: scanView() } });
  const words = [
    '--input',
    'hosts=@hosts.txt',
    '--input',
    'rate=5',
    '--allow',
    'a.test',
    '--deny',
    'x.a.test',
    '--name',
    'N',
    '--key',
    'k1',
  ];
  const { code, out } = await cli.run('scan', 'start', 'survey', ...words);
  expect(code).toBe(0);
  expect(out).toContain(`sonar scan watch ${scanIds.first}`);
  expect(api.asked).toHaveLength(1);
  expect(api.asked[0]).toMatchObject({
    authorization: 'Bearer secret-token',
    body: {
      definition: 'survey',
      name: 'N',
      clientKey: 'k1',
      inputs: { hosts: 'a.test\nb.test', rate: '5' },
      scope: { allow: ['a.test'], deny: ['x.a.test'] },
      pin: false,
    },
  });
});

test('an answer that was lost names the key that makes the start safe to repeat', async () => {
  api.answer = () => 'hang up';
  const { code, err } = await cli.run('scan', 'start', 'survey', '--key', 'k1');
  expect(code).toBe(6);
  expect(err).toContain('--key k1');
});

test('Ctrl-C during a watch leaves the scan and says how to go on', async () => {
  api.answer = () => {
    setImmediate(() => {
      for (const interrupt of cli.interrupts) interrupt();
    });
    return { json: scanDetail() };
  };
  const { code, err } = await cli.run('scan', 'watch', 'latest');
  expect(code).toBe(130);
  expect(err).toContain('sonar scan cancel');
});

test('--json is one value on stdout and nothing on stderr', async () => {
  const detail = scanDetail({ status: 'CompletedWithErrors', steps: [stepView('ports', { failed: 2 })] });
  const page = { items: [taskView({ item: { host: 'a\u001b[2J\u009b\u202e' } })], next: null };
  api.answer = route({ 'GET /v1/scans/latest': { json: detail }, 'GET /v1/tasks': { json: page } });
  const watched = await cli.run('scan', 'watch', 'latest', '--json');
  expect(JSON.parse(watched.out)).toEqual(detail);
  expect(watched).toMatchObject({ code: 3, err: '' });
  const tasks = await cli.run('--json', 'task', 'list', '--scan', 'latest');
  expect(JSON.parse(tasks.out)).toEqual(page);
  expect(tasks.out).not.toMatch(/[\u001b\u009b\u202e]/);
});

test('a fault with --json is one problem on stderr and nothing on stdout', async () => {
  api.answer = () => problem(404, 'scan_not_found', 'no scan latest');
  const { code, out, err } = await cli.run('scan', 'show', 'latest', '--json');
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(JSON.parse(err)).toMatchObject({ status: 404, code: 'scan_not_found', detail: 'no scan latest' });
  const usage = await cli.run('scan', 'show', '--json');
  expect(usage).toMatchObject({ code: 2, out: '' });
  expect(JSON.parse(usage.err)).toMatchObject({ code: 'usage', detail: "missing required argument 'id'" });
});

test('a list goes over pages up to its limit, and next goes on from there', async () => {
  const items = Array.from({ length: 1200 }, () => scanView());
  api.answer = ({ url }) => {
    const from = Number(url.searchParams.get('after') ?? 0);
    const to = from + Number(url.searchParams.get('limit'));
    return { json: { items: items.slice(from, to), next: to < items.length ? String(to) : null } };
  };
  const { out } = await cli.run('scan', 'list', '--limit', '1100', '--json');
  const page = JSON.parse(out) as { items: unknown[]; next: string };
  expect([page.items.length, page.next]).toEqual([1100, '1100']);
  const rest = await cli.run('scan', 'list', '--after', page.next, '--json');
  expect(JSON.parse(rest.out)).toMatchObject({ next: null });
});

test('a hostile remark stays in its cell', async () => {
  const failure = { code: 'command_failed', message: 'a\n\u001b]0;owned\u0007b' };
  api.answer = route({
    'GET /v1/tasks': { json: { items: [taskView({ status: 'Failed', exitCode: 7, failure })], next: null } },
  });
  const { out } = await cli.run('task', 'list', '--scan', 'latest', '--step', 'ports', '--status', 'Failed');
  expect(out.split('\n')).toHaveLength(3);
  expect(out).toContain('command_failed: a b; exit 7');
  expect(api.asked[0]?.url.search).toBe('?scan=latest&step=ports&status=Failed&limit=100');
});

test('a new token is alone on stdout, for a script to take', async () => {
  const created = { id: scanIds.second, name: 'w', role: 'worker', token: 'sonar_abc' };
  api.answer = route({ 'POST /v1/tokens': { status: 201, json: created } });
  const { out } = await cli.run(
    'token',
    'create',
    '--role',
    'worker',
    '--name',
    'w',
    '--tags',
    'nmap,httpx',
    '--name-prefix',
    'w-',
  );
  expect(out).toBe('sonar_abc\n');
  expect(api.asked[0]?.body).toEqual({
    role: 'worker',
    name: 'w',
    tags: ['nmap', 'httpx'],
    namePrefix: 'w-',
  });
});

test('cancel tells whether it is over', async () => {
  api.answer = route({ 'POST /v1/scans/latest/cancel': { json: scanView({ status: 'Cancelling' }) } });
  expect((await cli.run('scan', 'cancel', 'latest')).out).toContain('is Cancelling; see its end with');
});

test('show tells all about one scan', async () => {
  api.answer = route({ 'GET /v1/scans/latest': { json: scanDetail({ records: { service: 4 } }) } });
  const { out } = await cli.run('scan', 'show', 'latest');
  expect(out).toContain('scope        127.0.0.0/8');
  expect(out).toContain('records      4 service');
});

test('migrate without a database names the variable', async () => {
  const { code, err } = await cli.run('migrate', 'up');
  expect(code).toBe(2);
  expect(err).toContain('SONAR_DATABASE_URL is not set');
});

test('the list of workers says below itself that none is judged absent at present', async () => {
  const hold = { until: '2026-01-02T03:14:05.678Z', note: '6 of 10 workers fell silent at once' };
  api.answer = route({ 'GET /v1/workers': { json: { items: [], next: null, hold } } });
  expect((await cli.run('worker', 'list')).err).toContain(`: ${hold.note}`);
  api.answer = route({ 'GET /v1/workers': { json: { items: [], next: null, hold: null } } });
  expect((await cli.run('worker', 'list')).err).not.toContain(hold.note);
});
