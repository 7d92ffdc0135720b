// A process of a stack is started again whatever the disk says to what is written beside it.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ProcessLedger } from '#sonar/stack/process-ledger.ts';
import { ManagedProcess, type ProcessSpec } from '#sonar/stack/process-supervision.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();

async function started(name: string, changes: Partial<ProcessSpec> = {}) {
  const base = join(folder, name);
  mkdirSync(join(base, 'logs'), { recursive: true });
  const ledger = new ProcessLedger(join(base, 'run'), name);
  const said: string[] = [];
  const managed = new ManagedProcess(
    {
      name,
      kind: 'role',
      command: '/bin/sleep',
      args: ['60'],
      env: {},
      cwd: '/',
      log: join(base, 'logs', 'log'),
      stopSignal: 'SIGTERM',
      litter: [],
      graceMs: 1_000,
      ready: () => Promise.resolve(),
      readyWithinMs: 5_000,
      waysOut: [],
      onChange: (state, detail) => said.push(`${state}: ${detail}`),
      ...changes,
    },
    ledger,
  );
  await managed.start(new AbortController().signal);
  return { base, ledger, managed, said, [Symbol.asyncDispose]: () => managed.stop() };
}

/** True as soon as it holds, false when it does not within some seconds. */
async function holds(condition: () => boolean): Promise<boolean> {
  for (let tries = 0; tries < 400 && !condition(); tries += 1) await delay(20);
  return condition();
}

test('a process is restarted though its ledger cannot be written, and is in it when it can', async () => {
  await using stack = await started('ledger');
  const { managed, ledger } = stack;
  const first = managed.pid ?? 0;
  // A file in the place of the folder: nothing can be written there, as on a full disk.
  renameSync(dirname(ledger.file), join(stack.base, 'aside'));
  writeFileSync(dirname(ledger.file), '');
  process.kill(first, 'SIGKILL');
  expect(await holds(() => managed.restarts === 1 && managed.pid !== undefined)).toBe(true);
  rmSync(dirname(ledger.file));
  process.kill(managed.pid ?? 0, 'SIGKILL');
  expect(await holds(() => managed.restarts === 2 && managed.pid !== undefined)).toBe(true);
  const { processes } = JSON.parse(readFileSync(ledger.file, 'utf8')) as { processes: { pid: number }[] };
  expect(processes.map(({ pid }) => pid)).toEqual([managed.pid]);
});

test('a process whose log cannot be opened is tried again until it can', async () => {
  await using stack = await started('log');
  const { managed, base, said } = stack;
  renameSync(join(base, 'logs'), join(base, 'aside'));
  process.kill(managed.pid ?? 0, 'SIGKILL');
  expect(await holds(() => said.some((line) => line.includes('could not be started; restarting')))).toBe(
    true,
  );
  renameSync(join(base, 'aside'), join(base, 'logs'));
  expect(await holds(() => managed.pid !== undefined && said.at(-1)?.startsWith('ready') === true)).toBe(
    true,
  );
});

test('what a dead process left and cannot be removed does not keep it down', async () => {
  const litter = join(folder, 'litter');
  mkdirSync(join(litter, 'inner'), { recursive: true });
  await using stack = await started('litter', { litter: [litter] });
  const { managed } = stack;
  process.kill(managed.pid ?? 0, 'SIGKILL');
  expect(await holds(() => managed.restarts === 1 && managed.pid !== undefined)).toBe(true);
});
