// An operator's day on the whole stack, by the command line alone: run, look, hold, repair, try again, delete.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { query } from '../fixtures/query.ts';
import { SonarProcesses, until } from './sonar-processes.ts';

let sonar: SonarProcesses;
beforeAll(async () => {
  sonar = await SonarProcesses.prepare();
  await sonar.serve('all', {
    SONAR_FINALIZATION_ATTEMPTS: '1',
    SONAR_SCAN_TASK_CAP: '50',
    SONAR_URL_LIFE_MS: '10000',
  });
  await sonar.worker('operated', { slots: 4 });
});
afterAll(() => sonar?.stop());

const run = (options: readonly string[], command: readonly string[], stdin = '') =>
  sonar.cli(
    ['scan', 'run', '--tag', sonar.tag, '--allow', '127.0.0.0/8', ...options, '--', ...command],
    {},
    stdin,
  );
const json = async <Value>(...words: string[]): Promise<Value> => {
  const { code, stdout, stderr } = await sonar.cli(['--json', ...words]);
  if (code !== 0) throw new Error(`${words.join(' ')} exited with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Value;
};
interface Task {
  id: string;
  status: string;
  item: unknown;
}
const tasksOf = async (scan: string) => (await json<{ items: Task[] }>('task', 'list', '--scan', scan)).items;
const latest = async () => (await json<{ id: string }>('scan', 'show', 'latest')).id;

test('a command runs once for each item in scope; what is hostile or out of scope never becomes one', async () => {
  const items = '127.0.0.1\n192.0.2.1\n-oX\n; rm -rf /\n127.0.0.2\n';
  const { code, stderr } = await run(['--each', '-', '--wait'], ['echo', 'hello ${item}'], items);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const detail = await json<{ steps: object[] }>('scan', 'show', 'latest');
  expect(detail.steps).toMatchObject([{ step: 'run', refused: 3, counts: { completed: 2 } }]);
  const [task] = await tasksOf('latest');
  expect((await sonar.cli(['task', 'output', task!.id, '--output', 'result'])).stdout).toBe(
    'hello 127.0.0.1\n',
  );
  const saved = await sonar.cli(['task', 'output', task!.id, '-o', 'saved.txt']);
  expect(saved).toMatchObject({ code: 0 });
  expect(readFileSync(join(sonar.directory, 'saved.txt'), 'utf8')).toBe('hello 127.0.0.1\n');
});

test('why a command failed is one command away, and its scan is told as a story', async () => {
  const script = "console.error('no route'); console.log('half'); process.exit(7)";
  expect(await run(['--wait'], ['node', '-e', script])).toMatchObject({ code: 3 });
  const [task] = await tasksOf('latest');
  const said = await sonar.cli(['task', 'logs', task!.id]);
  expect(said.stderr).toContain('no route\n');
  expect(said.stderr).toContain('exit 7');
  expect(said.stderr).toContain(`sonar task output ${task!.id}`);
  expect((await sonar.cli(['task', 'output', task!.id, '--output', 'result'])).stdout).toBe('half\n');
  expect((await sonar.cli(['task', 'show', task!.id])).stdout).toMatch(/operated .*failed +7/);
  const story = (await sonar.cli(['scan', 'logs', 'latest', '--follow'])).stdout;
  expect(story).toMatch(
    /scan started[^]*run: placed on[^]*run: failed on operated[^]*scan ended CompletedWithErrors/,
  );
});

test('retry --failed opens a scan that has ended, and it ends Completed when the command does', async () => {
  const marker = join(sonar.directory, 'mended');
  const script = 'process.exit(require("fs").existsSync(process.argv[1]) ? 0 : 1)';
  expect(await run(['--wait'], ['node', '-e', script, marker])).toMatchObject({ code: 3 });
  const id = await latest();
  writeFileSync(marker, '');
  expect((await sonar.cli(['scan', 'retry', 'latest', '--failed'])).stdout).toContain('generation 2');
  expect((await sonar.cli(['scan', 'watch', id])).code).toBe(0);
  const again = await sonar.cli(['scan', 'retry', id, '--failed']);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('no Failed or Cancelled task') });
});

test('what could not be read is listed with a sample, repaired, and poisoned again while nobody can read it', async () => {
  expect(await run(['--read', 'jsonl', '--wait'], ['echo', 'no json at all'])).toMatchObject({ code: 3 });
  const id = await latest();
  const { items } = await json<{ items: { id: string; sample: object }[] }>('poison', 'list', '--scan', id);
  expect(items).toMatchObject([{ sample: { file: 'stdout', text: 'no json at all' } }]);
  expect((await sonar.cli(['scan', 'show', id])).stdout).toContain(`sonar poison list --scan ${id}`);
  const repaired = await json<{ repaired: number; scan: object }>('poison', 'retry', items[0]!.id);
  expect(repaired).toMatchObject({ repaired: 1, scan: { status: 'Running', generation: 2 } });
  expect((await sonar.cli(['scan', 'watch', id])).code).toBe(3);
  expect((await sonar.cli(['poison', 'retry', '--all', '--scan', id])).stdout).toContain(
    '1 result to be read',
  );
  expect((await sonar.cli(['scan', 'watch', id])).code).toBe(3);
});

test('paused in the midst of its work a scan places nothing more; resumed it does the rest', async () => {
  const gate = join(sonar.directory, 'gate');
  const script =
    'const fs = require("fs"); fs.appendFileSync(process.argv[1] + ".log", process.argv[2] + "\\n"); const t = setInterval(() => { if (fs.existsSync(process.argv[1])) clearInterval(t) }, 50)';
  const started = await run(
    ['--each', 'a,b,c,d', '--no-target', '--max-concurrent', '1'],
    ['node', '-e', script, gate, '${item}'],
  );
  expect(started.code).toBe(0);
  const id = await latest();
  const begun = () => readFileSync(`${gate}.log`, 'utf8').split('\n').length - 1;
  await until('a command runs', () => existsSync(`${gate}.log`) && begun() > 0);
  expect(await sonar.cli(['scan', 'pause', id])).toMatchObject({ code: 0 });
  const before = begun();
  writeFileSync(gate, '');
  await until('what ran is done', async () =>
    (await tasksOf(id)).some((task) => task.status === 'Completed'),
  );
  // A pass that was under way when it was paused may have placed one more.
  expect(begun()).toBeLessThanOrEqual(before + 1);
  expect((await tasksOf(id)).filter((task) => task.status === 'Pending').length).toBeGreaterThan(0);
  expect(await json<object>('scan', 'show', id)).toMatchObject({ status: 'Paused' });
  expect(await sonar.cli(['scan', 'resume', id])).toMatchObject({ code: 0 });
  expect((await sonar.cli(['scan', 'watch', id])).code).toBe(0);
  expect(readFileSync(`${gate}.log`, 'utf8')).toBe('a\nb\nc\nd\n');
});

test('a cancelled scan makes --wait exit 5, and its command is gone', async () => {
  const marker = join(sonar.directory, 'cancelled');
  const script =
    'require("fs").writeFileSync(process.argv[1], String(process.pid)); setInterval(() => {}, 1000)';
  const waiting = run(['--wait'], ['node', '-e', script, marker]);
  await until('the command runs', () => existsSync(marker) && readFileSync(marker, 'utf8') !== '');
  const pid = Number(readFileSync(marker, 'utf8'));
  const id = await latest();
  expect((await sonar.cli(['scan', 'delete', id])).stderr).toContain(`sonar scan cancel ${id}`);
  expect(await sonar.cli(['scan', 'cancel', id])).toMatchObject({ code: 0 });
  expect(await waiting).toMatchObject({ code: 5 });
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

test('more tasks than a scan may have make it Failed, and --wait exits 4', async () => {
  const items = Array.from({ length: 60 }, (_, n) => `item-${n}`).join('\n');
  expect(await run(['--each', '-', '--no-target', '--wait'], ['true', '${item}'], items)).toMatchObject({
    code: 4,
  });
});

test('a blocked step says so, and whose fault it is', async () => {
  const id = await sonar.start(`
sonar: 1
name: blocked
steps:
  fail: {tags: [${sonar.tag}], command: ["false"]}
  after: {tags: [${sonar.tag}], needs: {fail: all}, command: ["true"]}
`);
  expect((await sonar.ended(id)).status).toBe('CompletedWithErrors');
  const shown = (await sonar.cli(['scan', 'show', id])).stdout;
  expect(shown).toMatch(/after +blocked/);
  expect(shown).toContain('step "fail" has no completed task');
});

test('a deleted scan is gone at once from every list, and soon from the database', async () => {
  expect(await run(['--each', '127.0.0.9', '--read', 'lines', '--wait'], ['echo', '${item}'])).toMatchObject({
    code: 0,
  });
  const id = await latest();
  expect(await sonar.cli(['scan', 'delete', id])).toMatchObject({ code: 0 });
  expect(await sonar.cli(['scan', 'show', id])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no scan'),
  });
  expect(
    (await json<{ items: { id: string }[] }>('scan', 'list')).items.map((scan) => scan.id),
  ).not.toContain(id);
  const rows = async () =>
    (
      await sonar.clone.database.rows<{ rows: number }>(query`
        select (select count(*) from sonar.task where scan_id = ${id}) + (select count(*) from sonar.scan where scan_id = ${id}) as rows`)
    )[0]?.rows;
  await until('its rows are gone', async () => (await rows()) === 0);
});
