// Scans on the whole stack: real services, real processes, real signals.
import { readFileSync } from 'node:fs';
import { chooseApiPort } from '#sonar/cli/api-port.ts';
import { SonarProcesses, until } from './sonar-processes.ts';

let sonar: SonarProcesses;
beforeAll(async () => {
  sonar = await SonarProcesses.prepare();
  await sonar.serve('all');
  await sonar.worker('first', { slots: 4 });
});
afterAll(() => sonar?.stop());

const fanOut = (tag: string) => `
sonar: 1
name: fan-out
inputs: {names: {type: lines, required: true}}
steps:
  list:
    tags: [${tag}]
    foreach: {in: inputs.names}
    command: [node, -e, "for (const n of [1, 2, 3]) console.log(JSON.stringify({ip: '127.0.0.' + n, from: process.argv[1]}))", "\${item}"]
    outputs: {rows: {stdout: true, read: {format: jsonl, record: address, fields: {ip: ip}}}}
  each:
    tags: [${tag}]
    needs: {list: single}
    foreach: {in: list.rows}
    target: "\${item.ip}"
    command: [node, -e, "console.log(process.argv[1])", "\${item.from}-\${item.ip}"]
    outputs: {said: {stdout: true, read: lines}}
  once:
    tags: [${tag}]
    needs: {list: single}
    inputs: {rows: {from: list.rows}}
    command: [node, -e, "process.stdout.write(require('fs').readFileSync(process.argv[1]))", "\${in.rows}"]
    outputs: {copy: {stdout: true}}
  all:
    tags: [${tag}]
    needs: {each: all}
    inputs: {dir: {from: each.said, as: directory}}
    command: [node, -e, "const fs = require('fs'), path = require('path'); for (const d of fs.readdirSync(process.argv[1]).sort()) for (const f of fs.readdirSync(path.join(process.argv[1], d))) process.stdout.write(fs.readFileSync(path.join(process.argv[1], d, f)))", "\${in.dir}"]
    outputs: {merged: {stdout: true, read: lines}}
`;

test('root, Single with and without foreach, All over a directory: every item once, in order', async () => {
  const detail = await sonar.ended(await sonar.start(fanOut(sonar.tag), { names: ['a', 'b'] }));
  expect(detail.status).toBe('Completed');
  const done = Object.fromEntries(detail.steps.map((step) => [step.step, step.counts.completed]));
  expect(done).toEqual({ list: 2, each: 6, once: 2, all: 1 });
  expect(detail.records).toEqual({ address: 3 });
  const each = await Array.fromAsync(sonar.client.tasks.each({ scan: detail.id, step: 'each' }));
  const items = each.map((task) => task.item as { from: string; ip: string });
  expect(items.map((item) => `${item.from}-${item.ip}`).toSorted()).toEqual(
    ['a', 'b'].flatMap((name) => [1, 2, 3].map((n) => `${name}-127.0.0.${n}`)),
  );
});

test('an empty fan-out is no work all the way down, and the scan ends Completed', async () => {
  const detail = await sonar.ended(await sonar.start(fanOut(sonar.tag), { names: [] }));
  expect(detail.status).toBe('Completed');
  expect(detail.steps.map((step) => step.counts.noWork)).toEqual([1, 1, 1, 1]);
});

test('out of scope and unparseable targets are refused, counted and named; the others go on', async () => {
  const definition = `
sonar: 1
name: scoped
inputs: {hosts: {type: hosts, required: true}}
steps:
  touch:
    tags: [${sonar.tag}]
    foreach: {in: inputs.hosts}
    target: "\${item}"
    command: [echo, "\${item}"]
`;
  const detail = await sonar.ended(
    await sonar.start(definition, { hosts: ['127.0.0.1', '192.0.2.1', '; rm -rf /', '-oX'] }),
  );
  expect(detail.status).toBe('Completed');
  expect(detail.steps[0]).toMatchObject({ refused: 3, counts: { completed: 1 } });
  expect(detail.steps[0]?.note).toContain('192.0.2.1');
});

test('a failing command fails its task and the scan ends CompletedWithErrors; watch exits 3', async () => {
  const definition = `
sonar: 1
name: failing
steps:
  fail: {tags: [${sonar.tag}], command: ["false"]}
  after: {tags: [${sonar.tag}], needs: {fail: all}, command: ["true"]}
`;
  const id = await sonar.start(definition);
  const detail = await sonar.ended(id);
  expect(detail.status).toBe('CompletedWithErrors');
  expect(detail.steps.map((step) => step.state)).toEqual(['settled', 'blocked']);
  expect((await sonar.cli(['scan', 'watch', id])).code).toBe(3);
});

test('cancel ends the running command, and the scan is Cancelled', async () => {
  const marker = `${sonar.directory}/cancel-me`;
  const definition = `
sonar: 1
name: long
steps:
  wait: {tags: [${sonar.tag}], command: [node, -e, "require('fs').writeFileSync(process.argv[1], String(process.pid)); setInterval(() => {}, 1000)", "${marker}"]}
`;
  const id = await sonar.start(definition);
  await until('the command runs', () => readFileSync(marker, 'utf8') !== '');
  const pid = Number(readFileSync(marker, 'utf8'));
  expect((await sonar.cli(['scan', 'cancel', id])).code).toBe(0);
  const detail = await sonar.ended(id);
  expect(detail.status).toBe('Cancelled');
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

test('the same start again is the same scan', async () => {
  const definition = `
sonar: 1
name: keyed
steps: {one: {tags: [${sonar.tag}], command: ["true"]}}
`;
  await sonar.client.applyDefinition(definition);
  const words = ['--json', 'scan', 'start', 'keyed', '--allow', '127.0.0.1', '--key', 'nightly'];
  const [first, second] = await Promise.all([sonar.cli(words), sonar.cli(words)]);
  const id = (text: string) => (JSON.parse(text) as { id: string }).id;
  expect(id(first.stdout)).toBe(id(second.stdout));
  expect((await sonar.cli([...words, '--allow', '127.0.0.2'])).stderr).toContain('nightly');
});

test('no scope, a wrong token and an api that is not there: each names the thing and the way out', async () => {
  await sonar.client.applyDefinition(`
sonar: 1
name: plain
steps: {one: {tags: [${sonar.tag}], command: ["true"]}}
`);
  const noScope = await sonar.cli(['scan', 'start', 'plain']);
  expect(noScope.code).not.toBe(0);
  expect(noScope.stderr).toMatch(/scope/);
  const wrongToken = await sonar.cli(['scan', 'list'], { SONAR_TOKEN: 'sonar_wrong' });
  expect(wrongToken.stderr).toMatch(/SONAR_TOKEN/);
  const nowhere = await sonar.cli(['scan', 'list'], {
    SONAR_API_URL: `http://127.0.0.1:${await chooseApiPort(undefined)}`,
  });
  expect(nowhere.code).toBe(6);
  expect(nowhere.stderr).toMatch(/sonar up/);
});
