// From registration to the end: who may start, what the pulse says, and how a worker goes.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import { workerExitCodes } from '#sonar/worker/worker.ts';
import { startLong } from './long-command.ts';
import { problem } from './scripted-api.ts';
import { numberIn, poll } from './watch.ts';
import { openWorkbench, type Workbench } from './workbench.ts';

const shell = (script: string) => ['/bin/sh', '-c', script];
const listed = (bench: Workbench, attemptId: string) =>
  bench.watch.until('a pulse lists the attempt', () =>
    bench.api.of('pulse').some(({ attempts }) => attempts.includes(attemptId)),
  );

test('an api that is away is waited for', async () => {
  await using bench = await openWorkbench();
  bench.api.script.register = (_, count) =>
    count === 1 ? 'cut' : count === 2 ? { status: 502, body: '' } : undefined;
  await bench.worker().start();
  expect(bench.api.of('register')).toHaveLength(3);
});

test.each([
  [401, 'unauthenticated', 'SONAR_TOKEN'],
  [403, 'forbidden', 'tags probe'],
] as const)('a registration refused with %i says what to do', async (status, code, hint) => {
  await using bench = await openWorkbench();
  bench.api.script.register = () => problem(status, code);
  const worker = bench.worker();
  const error = await worker.start().catch((reason: unknown) => reason);
  expect(isSonarError(error, code)).toBe(true);
  expect((error as Error).message).toContain(hint);
  expect((error as Error).message).not.toContain(bench.api.token);
  expect(await worker.done).toMatchObject({ reason: 'fault' });
  // The name is free again.
  expect(readdirSync(join(bench.directory, 'bench', 'lock'))).toEqual([]);
});

test('pulses grow by one, list what is in hand from before `started`, and count the free slots', async () => {
  await using bench = await openWorkbench();
  bench.api.pulseEveryMs = 20;
  await bench.worker({ slots: 3 }).start();
  const message = await startLong(bench);
  await listed(bench, message.attemptId);
  const started = bench.api.of('started')[0];
  const later = bench.api.of('pulse').filter(({ sequence }) => sequence > (started?.pulseSequence ?? 0));
  expect(later.length).toBeGreaterThan(0);
  expect(later.every(({ attempts }) => attempts.includes(message.attemptId))).toBe(true);
  expect(later.at(-1)).toMatchObject({
    freeSlots: 2,
    slots: 3,
    draining: false,
    name: 'bench',
    tags: ['probe'],
  });
  expect(bench.api.of('pulse').map(({ sequence }) => sequence)).toEqual(
    bench.api.of('pulse').map((_, index) => index + 1),
  );
  expect(bench.api.violations).toEqual([]);
});

test('a pulse that fails is made up for, and one that is refused ends the worker', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker();
  bench.api.script.pulse = (_, count) => (count < 4 ? { status: 500, body: '' } : problem(403, 'forbidden'));
  await worker.start();
  const message = bench.message(shell('exec sleep 300'));
  bench.puller.push(message);
  const end = await worker.done;
  expect(end.reason).toBe('fault');
  expect(bench.api.of('pulse')).toHaveLength(4);
});

test('a name that is in use on this machine is refused, and free after the end', async () => {
  await using bench = await openWorkbench();
  const first = bench.worker();
  await first.start();
  const error = await bench
    .worker()
    .start()
    .catch((reason: unknown) => reason);
  expect(isSonarError(error, 'conflict')).toBe(true);
  expect((error as Error).message).toContain('"bench" already runs');
  await first.stop();
  await bench.worker().start();
});

test('a lock of a process that is gone does not hold the name', async () => {
  await using bench = await openWorkbench();
  const first = bench.worker();
  await first.start();
  await first.stop();
  writeFileSync(join(bench.directory, 'bench', 'lock', `${process.pid}-0`), '');
  await bench.worker().start();
  expect(readdirSync(join(bench.directory, 'bench', 'lock'))).toHaveLength(1);
});

test('a replaced worker kills its commands, sends nothing and ends with a code of its own', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker();
  await worker.start();
  await startLong(bench, "trap '' TERM; while :; do sleep 0.1; done");
  bench.api.pulse.replaced = true;
  const end = await worker.done;
  expect(end).toEqual({ reason: 'replaced' });
  expect(workerExitCodes[end.reason]).toBe(7);
  expect(bench.api.of('result')).toEqual([]);
  expect(bench.api.of('release')).toEqual([]);
});

test('a stop says so, takes nothing new and waits for what runs', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker({ drainMs: 20_000 });
  await worker.start();
  const end = join(bench.directory, 'end');
  const message = await startLong(bench, `until [ -e ${end} ]; do sleep 0.02; done`);
  const stopped = worker.stop();
  bench.puller.push(bench.message(['/bin/true']));
  await bench.watch.until('a draining pulse', () => bench.api.of('pulse').at(-1)?.draining === true);
  expect(bench.api.of('pulse').at(-1)).toMatchObject({
    draining: true,
    freeSlots: 0,
    attempts: [message.attemptId],
  });
  writeFileSync(end, '');
  await stopped;
  expect(bench.api.results.get(message.attemptId)).toMatchObject({ outcome: 'completed' });
  expect(bench.api.of('release')).toEqual([]);
  expect(bench.puller.queued).toBe(1);
  expect(await worker.done).toEqual({ reason: 'stopped' });
});

test('what does not end within the drain is ended first and then released', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker({ drainMs: 50 });
  await worker.start();
  const proof = join(bench.directory, 'proof');
  const message = await startLong(
    bench,
    `trap 'sleep 0.2; echo ended > ${proof}; exit 0' TERM; while :; do sleep 0.02; done`,
  );
  let endedFirst = false;
  bench.api.script.release = () => {
    endedFirst = readFileSync(proof, 'utf8') === 'ended\n';
    return undefined;
  };
  await worker.stop();
  expect(endedFirst).toBe(true);
  expect(bench.api.of('release')).toMatchObject([{ attemptId: message.attemptId, reason: 'shutdown' }]);
  expect(bench.api.of('result')).toEqual([]);
  expect(bench.puller.acked).toBe(1);
});

test('what a supervisor ends together with its worker is given back, not failed', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker({ drainMs: 20_000 });
  await worker.start();
  const pids = join(bench.directory, 'pids');
  const message = await startLong(bench, `echo $$ > ${pids}; exec sleep 300`);
  await poll('the command runs', () => numberIn(pids) > 0);
  // The command's end may come first: its signal is sent first here.
  process.kill(-numberIn(pids), 'SIGTERM');
  await worker.stop();
  expect(bench.api.of('release')).toMatchObject([{ attemptId: message.attemptId, reason: 'interrupted' }]);
  expect(bench.api.of('result')).toEqual([]);
});

test('a command that a signal ends while its worker stays has failed', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const message = bench.message(shell('kill -TERM $$; sleep 300'));
  bench.puller.push(message);
  expect(await bench.resultOf(message)).toMatchObject({
    outcome: 'failed',
    signal: 'SIGTERM',
    failure: { code: 'command_failed' },
  });
});

test('a second stop does not wait for the drain or for the grace', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker({ drainMs: 600_000, termGraceMs: 600_000 });
  await worker.start();
  await startLong(bench, "trap '' TERM; while :; do sleep 0.1; done");
  const first = worker.stop();
  await bench.watch.until('a draining pulse', () => bench.api.of('pulse').at(-1)?.draining === true);
  await Promise.all([first, worker.stop()]);
  expect(bench.api.of('release')).toMatchObject([{ reason: 'shutdown' }]);
});

test('a worker whose lifetime is over drains by itself', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker({ maxLifetimeMs: 3_000, drainMs: 50 });
  await worker.start();
  await startLong(bench);
  expect(await worker.done).toEqual({ reason: 'max_lifetime' });
  expect(bench.api.of('release')).toMatchObject([{ reason: 'max_lifetime' }]);
});

test('a stored result is sent by the next start, under the incarnation that made it, before it registers', async () => {
  await using bench = await openWorkbench();
  const first = bench.worker({ drainMs: 50, termGraceMs: 0 });
  await first.start();
  let broken = true;
  bench.api.script.result = () => (broken ? { status: 503, body: '' } : undefined);
  const message = bench.message(['/bin/true']);
  bench.puller.push(message);
  await bench.watch.until('the result is tried', () => bench.api.of('result').length > 0);
  await Promise.all([first.stop(), first.stop()]);
  expect(readdirSync(join(bench.directory, 'bench', 'results'))).toEqual([`${message.attemptId}.json`]);

  broken = false;
  const before = bench.api.calls.length;
  const second = bench.worker();
  await second.start();
  const resent = bench.api.calls.slice(before).filter(({ step }) => step !== 'pulse');
  expect(resent.map(({ step, incarnationId }) => [step, incarnationId])).toEqual([
    ['result', first.incarnationId],
    ['register', second.incarnationId],
  ]);
  expect(readdirSync(join(bench.directory, 'bench', 'results'))).toEqual([]);
  expect(bench.api.violations).toEqual([]);
});

test('a stored result that gets no disposition in time is given up, and the worker starts', async () => {
  await using bench = await openWorkbench();
  const first = bench.worker({ drainMs: 0, termGraceMs: 0 });
  await first.start();
  bench.api.script.result = () => ({ status: 503, body: '' });
  bench.puller.push(bench.message(['/bin/true']));
  await bench.watch.until('the result is tried', () => bench.api.of('result').length > 0);
  await Promise.all([first.stop(), first.stop()]);
  await bench.worker({ resendForMs: 100 }).start();
  expect(readdirSync(join(bench.directory, 'bench', 'results'))).toEqual([]);
});

test('a cancel before the command runs is a cancelled result without a start', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const message = bench.message(['/bin/true'], { inputs: [{ name: 'hosts', as: 'file' }] });
  bench.api.addInput(message.attemptId, 'hosts', { 'h.txt': 'x' });
  bench.api.store = () => 'hang';
  bench.puller.push(message);
  await listed(bench, message.attemptId);
  bench.api.pulse.cancel.push(message.attemptId);
  expect(await bench.resultOf(message)).toMatchObject({
    outcome: 'cancelled',
    exitCode: null,
    durationMs: 0,
  });
});

test('a stored result that signs nothing is given up at once, and its neighbours are sent', async () => {
  await using bench = await openWorkbench();
  const results = join(bench.directory, 'bench', 'results');
  mkdirSync(results, { recursive: true });
  const broken = newId<string>();
  writeFileSync(
    join(results, `${broken}.json`),
    JSON.stringify({ v: 1, attemptId: broken, credential: '!', body: '{}' }),
  );
  const message = bench.message(['/bin/true']);
  const whole = { v: 1, attemptId: message.attemptId, credential: message.credential, body: '{}' };
  writeFileSync(join(results, `${message.attemptId}.json`), JSON.stringify(whole));
  const clock = new AbortController();
  const never = delay(10_000, 'never', { signal: clock.signal }).catch(() => 'never');
  const worker = bench.worker();
  expect(await Promise.race([worker.start().then(() => 'started'), never])).toBe('started');
  clock.abort();
  // The neighbour is no result either, and it is the api that says so.
  expect(bench.api.violations).toEqual([expect.stringMatching(/^result: /)]);
  expect(readdirSync(results)).toEqual([]);
});
