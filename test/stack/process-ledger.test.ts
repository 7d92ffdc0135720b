import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findByEnvironment, identifyProcess } from '#sonar/stack/process-identity.ts';
import { endRun, leftLedgers, ProcessLedger, runVariable } from '#sonar/stack/process-ledger.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();
const litter = join(folder, 'left.sock');

/** A shell that says when it is ready, ignores SIGTERM when told to, and has a child of its own. */
async function startGroup(options: {
  runId?: string;
  stubborn?: boolean;
}): Promise<{ pid: number; ended: Promise<unknown> }> {
  const script = `${options.stubborn ? "trap '' TERM; " : ''}sleep 60 & echo ready; wait; wait`;
  const child = spawn('/bin/sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env['PATH'], ...(options.runId && { [runVariable]: options.runId }) },
  });
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  return { pid: child.pid ?? 0, ended };
}

test('what a run left is ended, whole groups, stubborn ones too, and what was never written down', async () => {
  const ledger = new ProcessLedger(folder, 'run-a');
  const [polite, stubborn, unrecorded] = await Promise.all([
    startGroup({ runId: 'run-a' }),
    startGroup({ runId: 'run-a', stubborn: true }),
    startGroup({ runId: 'run-a' }),
  ]);
  ledger.add(polite.pid, { name: 'polite', kind: 'service', stopSignal: 'SIGTERM', litter: [litter] });
  ledger.add(stubborn.pid, { name: 'stubborn', kind: 'role', stopSignal: 'SIGTERM', litter: [] });
  writeFileSync(litter, '');
  expect(leftLedgers(folder)).toEqual([ledger.file]);
  expect(await endRun(ledger.file)).toEqual(['polite', 'stubborn']);
  await Promise.all([polite.ended, stubborn.ended, unrecorded.ended]);
  expect(findByEnvironment(`${runVariable}=run-a`)).toEqual([]);
  expect(leftLedgers(folder)).toEqual([]);
  expect(existsSync(litter)).toBe(false);
});

test('a recycled pid is left alone', async () => {
  const bystander = await startGroup({});
  const ledger = new ProcessLedger(folder, 'run-b');
  ledger.add(bystander.pid, { name: 'old', kind: 'service', stopSignal: 'SIGTERM', litter: [] });
  const identity = identifyProcess(bystander.pid);
  writeFileSync(
    ledger.file,
    readFileSync(ledger.file, 'utf8').replace(identity?.startedAt ?? '', 'an earlier start'),
  );
  expect(await endRun(ledger.file)).toEqual([]);
  expect(identifyProcess(bystander.pid)).toEqual(identity);
  process.kill(-bystander.pid, 'SIGKILL');
  await bystander.ended;
});
