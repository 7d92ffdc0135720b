// Real workers are killed and frozen in the middle of their commands: others do the work, and its effects count once.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type SonarProcess, SonarProcesses, until } from './sonar-processes.ts';

let sonar: SonarProcesses;
beforeAll(async () => {
  sonar = await SonarProcesses.prepare();
  await sonar.serve('all', settings);
});
afterAll(() => sonar?.stop());

// The figures of a deployment in minutes, here in seconds.
const settings = {
  SONAR_PULSE_EVERY_MS: '500',
  SONAR_ALIVE_WITHIN_MS: '5000',
  SONAR_STALE_AFTER_MS: '5000',
  SONAR_RECOVERY_EVERY_MS: '500',
};

/** The first run of an item says that it runs and waits, for its item's file; any later one prints its record. */
const program = `
const fs = require('node:fs');
const [folder, item] = process.argv.slice(1);
const print = () => console.log(JSON.stringify({ ip: item }));
try {
  fs.writeFileSync(folder + '/' + item + '.pid', String(process.pid), { flag: 'wx' });
  setInterval(() => { if (fs.existsSync(folder + '/' + item + '.go')) { print(); process.exit(0); } }, 50);
} catch { print(); }
`;
const definition = (tag: string) => `
sonar: 1
name: ${tag}
inputs: {hosts: {type: hosts, required: true}}
steps:
  probe:
    tags: [${tag}]
    foreach: {in: inputs.hosts}
    target: "\${item}"
    command: [node, -e, ${JSON.stringify(program).replaceAll('$', '$$')}, ${JSON.stringify(sonar.directory)}, "\${item}"]
    outputs: {rows: {stdout: true, read: {format: jsonl, record: address, fields: {ip: ip}}}}
`;
const pidOf = (item: string): number =>
  Number(readFileSync(join(sonar.directory, `${item}.pid`), 'utf8') || Number.NaN);
const runs = (item: string): boolean => existsSync(join(sonar.directory, `${item}.pid`)) && pidOf(item) > 0;
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

/** The worker of `tag` runs all items of a new scan. */
async function running(worker: SonarProcess, tag: string, items: string[]): Promise<string> {
  const id = await sonar.start(definition(tag), { hosts: items });
  await until(`${worker.name} runs ${items.join(', ')}`, () => items.every(runs));
  return id;
}

const attemptsOf = (scanId: string) =>
  sonar.clone.database.rows<{ worker_name: string; end_reason: string; recovery_rule: string | null }>({
    name: '',
    text: 'select worker_name, end_reason, recovery_rule from sonar.attempt where scan_id = $1 order by number, worker_name',
    values: [scanId],
  });
const observedOf = async (scanId: string) =>
  (
    await sonar.clone.database.rows<{ key: string }>({
      name: '',
      text: 'select key from sonar.observation where scan_id = $1 order by key',
      values: [scanId],
    })
  ).map((row) => row.key);

test('a worker is killed with a running command: another one does the task, and the scan completes', async () => {
  const tag = `${sonar.tag}-killed`;
  const doomed = await sonar.worker('doomed', { tags: tag, slots: 1 });
  const id = await running(doomed, tag, ['127.0.2.1']);
  doomed.child.kill('SIGKILL');
  await sonar.worker('heir', { tags: tag, slots: 1 });
  const detail = await sonar.ended(id);
  expect(detail.status).toBe('Completed');
  expect(detail.steps[0]).toMatchObject({ recovered: 1, counts: { completed: 1 } });
  expect(await attemptsOf(id)).toEqual([
    { worker_name: 'doomed', end_reason: 'recovered', recovery_rule: 'worker_absent' },
    { worker_name: 'heir', end_reason: 'result', recovery_rule: null },
  ]);
  expect(await observedOf(id)).toEqual(['127.0.2.1']);
  expect(isGone(pidOf('127.0.2.1'))).toBe(true);
  const [task] = (await sonar.client.tasks.take({ scan: id }, 10)).items;
  expect(task).toMatchObject({ recoveries: 1, lastRecovery: { rule: 'worker_absent', worker: 'doomed' } });
});

test('a frozen worker loses its tasks; when it thaws its result is superseded and its commands end', async () => {
  const tag = `${sonar.tag}-frozen`;
  const [held, finished] = ['127.0.3.1', '127.0.3.2'];
  const frozen = await sonar.worker('frozen', { tags: tag, slots: 2 });
  const id = await running(frozen, tag, [held, finished]);
  frozen.child.kill('SIGSTOP');
  await sonar.worker('live', { tags: tag, slots: 2 });
  const detail = await sonar.ended(id);
  expect(detail.status).toBe('Completed');
  // Its command ends while nobody listens: a result to send is all that the worker finds.
  writeFileSync(join(sonar.directory, `${finished}.go`), '');
  await until('the command has ended by itself', () => isGone(pidOf(finished)));
  expect(isGone(pidOf(held))).toBe(false);
  frozen.child.kill('SIGCONT');
  await until('the other command was ended', () => isGone(pidOf(held)));
  await until('the thawed worker has nothing in hand', async () => {
    const workers = (await sonar.client.workers.take({}, 100)).items;
    return workers.some(
      (worker) => worker.name === 'frozen' && worker.state === 'alive' && worker.attempts === 0,
    );
  });
  expect((await attemptsOf(id)).map((attempt) => [attempt.worker_name, attempt.end_reason])).toEqual([
    ['frozen', 'recovered'],
    ['frozen', 'recovered'],
    ['live', 'result'],
    ['live', 'result'],
  ]);
  expect(await observedOf(id)).toEqual([held, finished]);
  expect((await sonar.client.scan(id)).status).toBe('Completed');
});
