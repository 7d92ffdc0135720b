// The worker on a broker that closes channels, dies and comes back: commands are neither stopped nor repeated.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import { newId } from '#sonar/platform/ids.ts';
import { createLogger, type Logger } from '#sonar/platform/logger.ts';
import { createPuller, type Puller } from '#sonar/transport/amqp-consumer.ts';
import { createPublisher } from '#sonar/transport/amqp-publisher.ts';
import { poll } from '../../contract/worker/watch.ts';
import { openWorkbench, type Workbench } from '../../contract/worker/workbench.ts';
import { type OwnBroker, startOwnBroker } from '../../fixtures/own-broker.ts';

const log = createLogger('test', 'silent');
let broker: OwnBroker;
beforeAll(async () => {
  broker = await startOwnBroker();
  await broker.setAcknowledgementTimeout(1_500, 300);
}, 240_000);
afterAll(() => broker[Symbol.asyncDispose]());

const freshTag = () => `t${newId().replaceAll('-', '').slice(-20)}`;

/** A puller that tells which of its deliveries had been handed out before. */
function watchedPuller(tag: string, redelivered: boolean[], changed: () => void) {
  return (to: Logger): Puller => {
    const puller = createPuller(broker.url, [tag], { log: to });
    return {
      close: () => puller.close(),
      async next(signal) {
        const delivery = await puller.next(signal);
        if (delivery !== null) redelivered.push(delivery.redelivered);
        changed();
        return delivery;
      },
    };
  };
}

async function publish(message: DispatchMessage): Promise<void> {
  const publisher = createPublisher(broker.url, { log });
  const [outcome] = await publisher.publish([
    { key: message.attemptId, tag: message.tag, body: Buffer.from(JSON.stringify(message)) },
  ]);
  await publisher.close();
  expect(outcome).toMatchObject({ outcome: 'confirmed' });
}

/** Messages of a queue that nobody holds; what is looked at goes back. */
async function ready(tag: string): Promise<number> {
  const puller = createPuller(broker.url, [tag], { log });
  const delivery = await puller.next(AbortSignal.timeout(1_000));
  await puller.close();
  return delivery === null ? 0 : 1;
}

function countedCommand(bench: Workbench, tag: string) {
  const [runs, end] = [join(bench.directory, `runs-${newId()}`), join(bench.directory, `end-${newId()}`)];
  const count = () => {
    try {
      return readFileSync(runs, 'utf8').trim().split('\n').length;
    } catch {
      return 0;
    }
  };
  return {
    message: bench.message(
      ['/bin/sh', '-c', `echo run >> ${runs}; until [ -e ${end} ]; do sleep 0.02; done`],
      { tag },
    ),
    runs: count,
    started: () => poll('the command runs', () => count() > 0),
    end: () => writeFileSync(end, ''),
  };
}

/** A worker of one tag runs one command; each delivery of its message is noted. */
async function commandUnderWatch() {
  const tag = freshTag();
  const redelivered: boolean[] = [];
  let changed = (): void => undefined;
  const bench = await openWorkbench(watchedPuller(tag, redelivered, () => changed()));
  changed = () => bench.watch.changed();
  const worker = bench.worker({ tags: [tag], slots: 2 });
  await worker.start();
  const command = countedCommand(bench, tag);
  await publish(command.message);
  await command.started();
  return { tag, redelivered, bench, worker, command };
}

test('an acknowledgement timeout closes the channel again and again: one run, one `started`, one result, no message left', async () => {
  const { tag, redelivered, bench, worker, command } = await commandUnderWatch();
  await using _ = bench;
  await bench.watch.until('the broker took it back twice', () => redelivered.length >= 3, 50_000);
  command.end();
  expect(await bench.resultOf(command.message)).toMatchObject({ outcome: 'completed' });
  await worker.stop();
  expect(redelivered.slice(0, 3)).toEqual([false, true, true]);
  expect(command.runs()).toBe(1);
  expect(bench.api.of('started')).toHaveLength(1);
  expect(bench.api.of('result')).toHaveLength(1);
  expect(await ready(tag)).toBe(0);
});

test('a message that the broker takes from a running command and gives to another worker is skipped and acked there', async () => {
  const tag = freshTag();
  await using bench = await openWorkbench((to) => createPuller(broker.url, [tag], { log: to }));
  const busy = bench.worker({ tags: [tag], slots: 1, name: 'busy' });
  await busy.start();
  const command = countedCommand(bench, tag);
  await publish(command.message);
  await command.started();
  const idle = bench.worker({ tags: [tag], slots: 1, name: 'idle' });
  await idle.start();
  await bench.watch.until(
    'the other asks whether to run it',
    () => bench.api.of('started').length === 2,
    50_000,
  );
  await idle.stop();
  expect(await ready(tag)).toBe(0);
  command.end();
  expect(await bench.resultOf(command.message)).toMatchObject({ outcome: 'completed', worker: 'busy' });
  await busy.stop();
  expect(bench.api.of('started').map((started) => started.worker)).toEqual(['busy', 'idle']);
  expect(command.runs()).toBe(1);
  expect(await ready(tag)).toBe(0);
});

test('a broker that is killed and comes back under a command: its message is adopted, and what waited is served', async () => {
  const { tag, redelivered, bench, worker, command } = await commandUnderWatch();
  await using _ = bench;
  await broker.kill();
  await broker.restart();
  await bench.watch.until('the redelivery', () => redelivered.length >= 2, 100_000);
  const waiting = bench.message(['/bin/true'], { tag });
  await publish(waiting);
  expect(await bench.resultOf(waiting)).toMatchObject({ outcome: 'completed' });
  command.end();
  expect(await bench.resultOf(command.message)).toMatchObject({ outcome: 'completed' });
  await worker.stop();
  expect(command.runs()).toBe(1);
  expect(
    bench.api.of('started').filter(({ attemptId }) => attemptId === command.message.attemptId),
  ).toHaveLength(1);
  expect(await ready(tag)).toBe(0);
}, 240_000);
