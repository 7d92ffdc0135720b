// Two minutes of the torture in every run of the tests, always the same faults. Longer ones are run by hand.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const checkout = join(import.meta.dirname, '..', '..');

let ended: Promise<unknown> = Promise.resolve();
let child: ReturnType<typeof spawn> | undefined;
afterAll(async () => {
  child?.kill('SIGTERM');
  await ended;
});

test('after two minutes of faults nothing is lost, doubled, stuck or left behind', async () => {
  const words = ['--minutes', '2', '--scans', '18', '--seed', '4', '--settle-minutes', '3', '--json'];
  const running = spawn(
    process.execPath,
    [join(checkout, 'bin', 'run.mjs'), 'test/torture/main.ts', ...words],
    { cwd: checkout, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  child = running;
  ended = once(running, 'close');
  let result = '';
  let progress = '';
  running.stdout.setEncoding('utf8').on('data', (text: string) => (result += text));
  running.stderr.setEncoding('utf8').on('data', (text: string) => (progress += text));
  await ended;
  const last = result.trim().split('\n').at(-1) || '{}';
  // What differed, and the schedule, are in the progress: it is shown when the test fails.
  expect({ ...(JSON.parse(last) as object), progress }).toMatchObject({
    scans: 18,
    lost: 0,
    duplicated: 0,
    stuck: 0,
    leaked: 0,
  });
  expect(running.exitCode).toBe(0);
});
