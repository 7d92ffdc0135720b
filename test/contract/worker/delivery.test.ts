// Messages, callbacks and uploads when the broker, the api or the object store do what they do on bad days.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { problem } from './scripted-api.ts';
import { poll } from './watch.ts';
import { openWorkbench, type Workbench } from './workbench.ts';

const shell = (script: string) => ['/bin/sh', '-c', script];
const stdoutOutput = [{ name: 'records', path: null, optional: false }];
const away = { status: 503, body: 'away' };
const folder = (bench: Workbench, name: string) => readdirSync(join(bench.directory, 'bench', name));

/** A command that counts its runs in a file and ends when another file appears. */
function held(bench: Workbench) {
  const runs = join(bench.directory, 'runs');
  const end = join(bench.directory, 'end');
  return {
    command: shell(`echo run >> ${runs}; until [ -e ${end} ]; do sleep 0.02; done; echo out`),
    started: () => poll('the command runs', () => count() > 0),
    end: () => writeFileSync(end, ''),
    runs: count,
  };
  function count() {
    try {
      return readFileSync(runs, 'utf8').trim().split('\n').length;
    } catch {
      return 0;
    }
  }
}

test('a broker that closes the channel under a running command neither stops nor repeats it', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 2 }).start();
  const command = held(bench);
  const message = bench.message(command.command);
  bench.puller.push(message);
  await command.started();
  for (let round = 0; round < 3; round += 1) {
    bench.puller.loseChannels();
    await bench.watch.until(
      'the message is held again',
      () => bench.puller.queued === 0 && bench.puller.held === 1,
    );
  }
  command.end();
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed' });
  await bench.watch.until(
    'the ack of the adopted delivery',
    () => bench.puller.acked === 1 && bench.puller.held === 0,
  );
  expect(command.runs()).toBe(1);
  expect(bench.api.of('started')).toHaveLength(1);
  expect(bench.puller.requeued).toBe(0);
});

test('a second copy of a message in hand is dropped and the first stays held', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 2 }).start();
  const command = held(bench);
  const message = bench.message(command.command);
  bench.puller.push(message);
  await command.started();
  bench.puller.push(message);
  await bench.watch.until('the copy is acked', () => bench.puller.acked === 1 && bench.puller.held === 1);
  command.end();
  await bench.watch.until('the first is acked', () => bench.puller.acked === 2);
  expect(command.runs()).toBe(1);
});

test('a message that another delivery has started is skipped and acked', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  bench.api.script.started = () => ({
    status: 200,
    body: { disposition: 'skip', reason: 'running elsewhere', serverTime: '' },
  });
  bench.puller.push(bench.message(['/bin/true']));
  await bench.watch.until('the ack', () => bench.puller.acked === 1);
  expect(bench.api.of('result')).toEqual([]);
});

test('what is no dispatch message, or is refused by the api, becomes a dead letter', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  bench.api.script.started = () => problem(422, 'invalid');
  bench.puller.push('not json');
  bench.puller.push('{"v": 1}');
  bench.puller.push(bench.message(['/bin/true']));
  await bench.watch.until('three dead letters', () => bench.puller.dead.length === 3);
  expect(bench.puller.requeued).toBe(0);
});

test('while `started` gets no answer the message goes back, without a spin, and its delivery id stays', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ startedForMs: 300 }).start();
  let broken = true;
  bench.api.script.started = () => (broken ? away : undefined);
  const message = bench.message(['/bin/true']);
  bench.puller.push(message);
  await bench.watch.until('the message went back twice', () => bench.puller.requeued === 2);
  // Each turn tried for startedForMs; a spin would have made hundreds.
  expect(bench.puller.delivered).toBeLessThanOrEqual(3);
  broken = false;
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed' });
  expect(new Set(bench.api.of('started').map(({ deliveryId }) => deliveryId)).size).toBe(1);
});

test('an api outage during a long command costs nothing: kept, listed, resent, and the redelivery gets its ack', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 1, resultForMs: 400 }).start();
  const command = held(bench);
  const message = bench.message(command.command, { outputs: stdoutOutput });
  bench.puller.push(message);
  await command.started();
  let broken = true;
  for (const step of ['pulse', 'uploads', 'result'] as const)
    bench.api.script[step] = () => (broken ? 'cut' : undefined);
  command.end();
  await bench.watch.until('the message went back', () => bench.puller.requeued === 1);
  const waiting = bench.message(['/bin/true']);
  bench.puller.push(waiting);
  const pulsesBefore = bench.api.of('pulse').length;
  await bench.watch.until('pulses go on', () => bench.api.of('pulse').length > pulsesBefore + 2);
  // Nothing is pulled meanwhile, and the attempt is still listed.
  expect(bench.puller.queued).toBe(2);
  expect(bench.api.of('pulse').at(-1)).toMatchObject({ attempts: [message.attemptId], freeSlots: 0 });
  broken = false;
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed' });
  expect(await bench.resultOf(waiting)).toMatchObject({ outcome: 'completed' });
  await bench.watch.until('both acks', () => bench.puller.acked === 2 && bench.puller.queued === 0);
  expect(command.runs()).toBe(1);
  await poll(
    'the disk is clear',
    () =>
      folder(bench, 'results').length + folder(bench, 'work').length + folder(bench, 'streams').length === 0,
  );
});

test('kept results have a bound: when as many wait as there are slots, nothing more is pulled', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 2, resultForMs: 400 }).start();
  let broken = true;
  bench.api.script.result = () => (broken ? away : undefined);
  const messages = Array.from({ length: 6 }, () => bench.message(['/bin/true']));
  for (const message of messages) bench.puller.push(message);
  await bench.watch.until('two results are kept', () => bench.puller.requeued >= 2);
  const pulses = bench.api.of('pulse').length;
  await bench.watch.until('the pulse shows no room', () =>
    bench.api
      .of('pulse')
      .slice(pulses)
      .some(({ freeSlots, attempts }) => freeSlots === 0 && attempts.length >= 2),
  );
  expect(bench.api.of('pulse').every(({ attempts }) => attempts.length <= 4)).toBe(true);
  broken = false;
  for (const message of messages) await bench.resultOf(message);
  await bench.watch.until('all are acked', () => bench.puller.queued === 0 && bench.puller.held === 0);
});

test.each(['accepted', 'duplicate', 'conflict', 'superseded', 'rejected'] as const)(
  'the disposition %s ends the attempt',
  async (disposition) => {
    await using bench = await openWorkbench();
    await bench.worker().start();
    bench.api.script.result = () => ({ status: 200, body: { disposition, serverTime: '' } });
    bench.puller.push(bench.message(['/bin/true']));
    await bench.watch.until('the ack', () => bench.puller.acked === 1);
    expect(bench.api.of('result')).toHaveLength(1);
    await poll(
      'the disk is clear',
      () => folder(bench, 'results').length + folder(bench, 'work').length === 0,
    );
  },
);

test("a problem of Sonar's own ends the attempt, a proxy's page does not", async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  bench.api.script.result = (_, count) => {
    if (count === 1) return { status: 404, body: '<html>no backend</html>' };
    if (count === 2) return { status: 429, body: '' };
    return count === 3 ? { status: 200, body: '<html>log in</html>' } : problem(422, 'invalid');
  };
  bench.puller.push(bench.message(['/bin/true']));
  await bench.watch.until('the ack', () => bench.puller.acked === 1);
  expect(bench.api.of('result')).toHaveLength(4);
});

test('every send of a result is the same to the byte and signed anew', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  bench.api.script.result = (_, count) => (count < 4 ? away : undefined);
  const message = bench.message(['/bin/true']);
  bench.puller.push(message);
  await bench.resultOf(message);
  expect(new Set(bench.api.of('result').map((result) => JSON.stringify(result))).size).toBe(1);
  expect(bench.api.violations).toEqual([]);
});

test('a skewed clock is corrected by what the api says, not taken for a refusal', async () => {
  await using bench = await openWorkbench();
  bench.api.clockOffsetMs = 200_000;
  await bench.worker().start();
  const message = bench.message(shell('echo out'), { outputs: stdoutOutput });
  bench.puller.push(message);
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed' });
  bench.api.clockOffsetMs = -200_000;
  const next = bench.message(['/bin/true']);
  bench.puller.push(next);
  expect(await bench.resultOf(next)).toMatchObject({ outcome: 'completed' });
  expect(bench.api.violations).toEqual([]);
});

test('a result that the disk does not take is sent all the same', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  rmSync(join(bench.directory, 'bench', 'results'), { recursive: true });
  bench.api.script.result = (_, count) => (count < 3 ? away : undefined);
  const message = bench.message(['/bin/true']);
  bench.puller.push(message);
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed' });
  await bench.watch.until('the ack', () => bench.puller.acked === 1);
});

const recordsFile = [{ name: 'records', path: 'records', optional: false }];

test('an output that vanished before its upload costs that output, and the slot goes on', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 1 }).start();
  bench.api.store = () => away;
  const message = bench.message(shell('echo x > out/records; echo y'), {
    outputs: [...recordsFile, ...stdoutOutput.map((output) => ({ ...output, name: 'lines' }))],
  });
  bench.puller.push(message);
  await poll('an upload was tried', () => bench.api.storeRequests.length > 1);
  rmSync(join(bench.directory, 'bench', 'work', message.attemptId, 'out'), { recursive: true });
  bench.api.store = undefined;
  const result = await bench.resultOf(message);
  expect(result).toMatchObject({ outcome: 'failed', exitCode: 0, failure: { code: 'output_refused' } });
  expect(result.failure?.message).toContain('output records: records changed or vanished');
  // What could be had is kept.
  expect(result.manifest.map(({ output }) => output)).toEqual(['lines']);
  const next = bench.message(['/bin/true']);
  bench.puller.push(next);
  expect(await bench.resultOf(next)).toMatchObject({ outcome: 'completed' });
});

test.each([
  ['longer', 'xx'],
  ['another of the same length', 'y'],
])('an output that is %s by the time of its upload costs that output', async (_, content) => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 1 }).start();
  bench.api.store = () => away;
  const message = bench.message(shell('printf x > out/records'), { outputs: recordsFile });
  bench.puller.push(message);
  await poll('an upload was tried', () => bench.api.storeRequests.length > 0);
  writeFileSync(join(bench.directory, 'bench', 'work', message.attemptId, 'out', 'records'), content);
  bench.api.store = undefined;
  expect(await bench.resultOf(message)).toMatchObject({
    outcome: 'failed',
    manifest: [],
    failure: { code: 'output_refused' },
  });
});

test('an object store that refuses an output again and again is believed in the end, but not at once', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 1 }).start();
  const passing = bench.message(shell('echo x > out/records'), { outputs: recordsFile });
  bench.api.store = (_, count) => (count <= 5 ? { status: 403, body: 'expired' } : undefined);
  bench.puller.push(passing);
  expect(await bench.resultOf(passing)).toMatchObject({ outcome: 'completed', failure: null });
  const lasting = bench.message(shell('echo x > out/records'), { outputs: recordsFile });
  bench.api.store = () => ({ status: 404, body: 'NoSuchBucket' });
  bench.puller.push(lasting);
  const result = await bench.resultOf(lasting);
  expect(result).toMatchObject({ outcome: 'failed', manifest: [], failure: { code: 'output_refused' } });
  expect(result.failure?.message).toContain('NoSuchBucket');
});

test('a failed command whose outputs are lost is told by its own failure', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  bench.api.store = () => ({ status: 404, body: 'NoSuchBucket' });
  const message = bench.message(shell('echo x > out/records; exit 3'), { outputs: recordsFile });
  bench.puller.push(message);
  expect(await bench.resultOf(message)).toMatchObject({
    outcome: 'failed',
    manifest: [],
    failure: { code: 'command_failed' },
  });
});

test('a message whose credential signs nothing becomes a dead letter, and the next one is run', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 1, startedForMs: 500 }).start();
  for (const credential of ['!', '', 'no base64'])
    bench.puller.push(bench.message(['/bin/true'], { credential }));
  const next = bench.message(['/bin/true']);
  bench.puller.push(next);
  expect(await bench.resultOf(next)).toMatchObject({ outcome: 'completed' });
  expect(bench.puller.dead).toHaveLength(3);
  expect(bench.api.of('started')).toHaveLength(1);
});
