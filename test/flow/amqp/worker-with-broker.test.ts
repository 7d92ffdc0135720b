// The worker on a real broker, the api scripted: what the broker does to messages must not reach the commands.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'amqplib';
import { tagQueue } from '#sonar/contracts/names.ts';
import { newId } from '#sonar/platform/ids.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { createPuller } from '#sonar/transport/amqp-consumer.ts';
import { createPublisher } from '#sonar/transport/amqp-publisher.ts';
import { poll } from '../../contract/worker/watch.ts';
import { openWorkbench } from '../../contract/worker/workbench.ts';
import { openRelay } from './relay.ts';

const url = process.env.SONAR_TEST_AMQP_URL as string;
const log = createLogger('test', 'silent');

/** A queue of its own, and how many messages of it are ready; the queue is gone afterwards. */
async function openQueue() {
  const tag = `t${newId().replaceAll('-', '').slice(-20)}`;
  const publisher = createPublisher(url, { log });
  const connection = await connect(url);
  const channel = await connection.createChannel();
  return {
    tag,
    publisher,
    ready: async () => (await channel.checkQueue(tagQueue(tag))).messageCount,
    async [Symbol.asyncDispose]() {
      await publisher.close();
      await channel.deleteQueue(tagQueue(tag));
      await connection.close();
    },
  };
}

const lines = (path: string) => {
  try {
    return readFileSync(path, 'utf8').trim().split('\n').length;
  } catch {
    return 0;
  }
};

test('two hundred messages on eight slots: each runs once, is accepted once, and the queue is empty', async () => {
  await using queue = await openQueue();
  await using bench = await openWorkbench((to) => createPuller(url, [queue.tag], { log: to }));
  const worker = bench.worker({ tags: [queue.tag], slots: 8 });
  await worker.start();
  const all = Array.from({ length: 200 }, () => bench.message(['/bin/true'], { tag: queue.tag }));
  const outcomes = await queue.publisher.publish(
    all.map((message) => ({
      key: message.attemptId,
      tag: queue.tag,
      body: Buffer.from(JSON.stringify(message)),
    })),
  );
  expect(outcomes.every(({ outcome }) => outcome === 'confirmed')).toBe(true);
  await bench.watch.until('all results', () => bench.api.results.size === 200, 50_000);
  await worker.stop();
  expect(bench.api.of('started')).toHaveLength(200);
  expect(bench.api.of('result')).toHaveLength(200);
  expect(await queue.ready()).toBe(0);
  expect(bench.api.violations).toEqual([]);
});

test('a connection cut under a running command: the redelivery is adopted, the command runs once', async () => {
  await using queue = await openQueue();
  await using relay = await openRelay(url);
  await using bench = await openWorkbench((to) => createPuller(relay.url, [queue.tag], { log: to }));
  const worker = bench.worker({ tags: [queue.tag], slots: 2 });
  await worker.start();
  const [runs, end] = [join(bench.directory, 'runs'), join(bench.directory, 'end')];
  const message = bench.message(
    ['/bin/sh', '-c', `echo run >> ${runs}; until [ -e ${end} ]; do sleep 0.02; done`],
    { tag: queue.tag },
  );
  await queue.publisher.publish([
    { key: message.attemptId, tag: queue.tag, body: Buffer.from(JSON.stringify(message)) },
  ]);
  await poll('the command runs', () => lines(runs) === 1);
  relay.cut();
  // Other work goes on beside it, so the second slot pulls again on the new connection.
  const other = bench.message(['/bin/true'], { tag: queue.tag });
  await queue.publisher.publish([
    { key: other.attemptId, tag: queue.tag, body: Buffer.from(JSON.stringify(other)) },
  ]);
  await bench.resultOf(other);
  await poll('the redelivery is adopted', async () => (await queue.ready()) === 0);
  writeFileSync(end, '');
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed' });
  await worker.stop();
  expect(lines(runs)).toBe(1);
  expect(bench.api.of('started').filter(({ attemptId }) => attemptId === message.attemptId)).toHaveLength(1);
  expect(await queue.ready()).toBe(0);
});
