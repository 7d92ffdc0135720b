// `sonar worker start` as a process of its own: signals, lifetime, warnings, and what a killed one leaves to the next.
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { environment } from '#sonar/contracts/names.ts';
import { newId } from '#sonar/platform/ids.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { createPublisher } from '#sonar/transport/amqp-publisher.ts';
import { interruptionIn, startMetadataServer } from '../../contract/worker/metadata-server.ts';
import { poll } from '../../contract/worker/watch.ts';
import { openWorkbench, type Workbench } from '../../contract/worker/workbench.ts';

const url = process.env.SONAR_TEST_AMQP_URL as string;
const checkout = join(import.meta.dirname, '..', '..', '..');
const log = createLogger('test', 'silent');
const exits = (child: ChildProcess): Promise<number | NodeJS.Signals | null> =>
  new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));

/** A worker of its own tag; it is killed when the test is over. */
async function startProcess(bench: Workbench, words: string[], variables: NodeJS.ProcessEnv = {}) {
  const tag = `t${newId().replaceAll('-', '').slice(-20)}`;
  const args = ['src/main.ts', 'worker', 'start', '--name', 'bench', '--tags', tag, '--dir', bench.directory];
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args, ...words], {
    cwd: checkout,
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      HOME: bench.directory,
      [environment.apiUrl]: bench.api.url,
      [environment.token]: bench.api.token,
      [environment.amqpUrl]: url,
      ...variables,
    },
  });
  const exited = exits(child);
  return {
    child,
    exited,
    async run(command: string[]) {
      const message = bench.message(command, { tag });
      const publisher = createPublisher(url, { log });
      await publisher.publish([{ key: message.attemptId, tag, body: Buffer.from(JSON.stringify(message)) }]);
      await publisher.close();
      await bench.watch.until(
        'the attempt is started',
        () => bench.api.of('started').some(({ attemptId }) => attemptId === message.attemptId),
        50_000,
      );
      return message;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

const long = ['/bin/sh', '-c', "trap '' TERM; while :; do sleep 0.1; done"];
const draining = (bench: Workbench) =>
  bench.watch.until('a draining pulse', () => bench.api.of('pulse').at(-1)?.draining === true, 50_000);

test('an interruption notice from the service that the standard variable names ends it in order', async () => {
  await using bench = await openWorkbench();
  await using metadata = await startMetadataServer();
  await using worker = await startProcess(bench, [], { AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url });
  const message = await worker.run(['/bin/sleep', '300']);
  metadata.action = interruptionIn(5_000);
  expect(await worker.exited).toBe(0);
  expect(bench.api.of('release')).toMatchObject([{ attemptId: message.attemptId, reason: 'spot' }]);
});

test('without a name for it nobody is asked about the machine, and a lifetime ends it in order', async () => {
  await using bench = await openWorkbench();
  await using worker = await startProcess(bench, ['--max-lifetime', '3s', '--drain', '0s']);
  await worker.run(['/bin/sleep', '300']);
  expect(await worker.exited).toBe(0);
  expect(bench.api.of('release')).toMatchObject([{ reason: 'max_lifetime' }]);
});

test('the first SIGTERM drains, the second ends and gives back at once', async () => {
  await using bench = await openWorkbench();
  await using worker = await startProcess(bench, ['--drain', '1h']);
  await worker.run(long);
  worker.child.kill('SIGTERM');
  await draining(bench);
  expect(bench.api.of('release')).toEqual([]);
  // The same signal within a moment counts as one that came twice: ten pulses take longer.
  const pulses = bench.api.of('pulse').length;
  await bench.watch.until('ten more pulses', () => bench.api.of('pulse').length > pulses + 10);
  worker.child.kill('SIGTERM');
  expect(await worker.exited).toBe(0);
  expect(bench.api.of('release')).toMatchObject([{ reason: 'shutdown' }]);
});

test('a worker killed with a stored result: the next sends it under the old incarnation, then registers, then clears', async () => {
  await using bench = await openWorkbench();
  let away = true;
  bench.api.script.result = () => (away ? { status: 503, body: '' } : undefined);
  const first = await startProcess(bench, []);
  const message = await first.run(['/bin/true']);
  const results = join(bench.directory, 'bench', 'results');
  await poll('the result is stored', () => readdirSync(results).includes(`${message.attemptId}.json`));
  await first[Symbol.asyncDispose]();
  const [firstRegistration] = bench.api.of('register');
  const before = bench.api.calls.length;

  await using _second = await startProcess(bench, []);
  await bench.watch.until('it is resent', () => bench.api.calls.slice(before).length > 1, 50_000);
  expect(bench.api.of('register')).toHaveLength(1);
  away = false;
  await bench.watch.until('it registers', () => bench.api.of('register').length === 2, 50_000);
  const calls = bench.api.calls.slice(before).filter(({ step }) => step !== 'pulse');
  expect(calls.at(-1)).toMatchObject({ step: 'register' });
  expect(new Set(calls.slice(0, -1).map(({ step, incarnationId }) => `${step} ${incarnationId}`))).toEqual(
    new Set([`result ${firstRegistration?.incarnationId}`]),
  );
  expect(bench.api.results.get(message.attemptId)).toMatchObject({ outcome: 'completed' });
  expect(readdirSync(results)).toEqual([]);
  expect(readdirSync(join(bench.directory, 'bench', 'work'))).toEqual([]);
});
