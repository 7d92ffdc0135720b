// Against a real broker: what is confirmed can be pulled, what cannot be routed says so, what closes is lost.
import { connect } from 'amqplib';
import { deadLetterQueue, dispatchExchange, tagQueue } from '#sonar/contracts/names.ts';
import { newId } from '#sonar/platform/ids.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { createPuller } from '#sonar/transport/amqp-consumer.ts';
import { type DeadLetter, readDeadLetters } from '#sonar/transport/amqp-dead-letters.ts';
import { createPublisher } from '#sonar/transport/amqp-publisher.ts';
import { openRelay } from './relay.ts';

const url = process.env.SONAR_TEST_AMQP_URL as string;
const log = createLogger('test', 'silent');
const freshTag = () => `t${newId().replaceAll('-', '').slice(-20)}`;
const messages = (tag: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ key: newId(), tag, body: Buffer.from(`message ${index}`) }));

/** Somebody else at the broker, with queues that are gone afterwards. */
async function openOperator(...tags: string[]) {
  const connection = await connect(url);
  return {
    connection,
    async with<T>(
      use: (channel: Awaited<ReturnType<typeof connection.createChannel>>) => Promise<T>,
    ): Promise<T> {
      const channel = await connection.createChannel();
      channel.on('error', () => undefined);
      const result = await use(channel);
      await channel.close();
      return result;
    },
    async [Symbol.asyncDispose]() {
      for (const tag of tags) await this.with((channel) => channel.deleteQueue(tagQueue(tag)));
      await connection.close();
    },
  };
}

test('a window of messages is confirmed in order and each is pulled once, across tags in turn', async () => {
  const tags = [freshTag(), freshTag()] as const;
  await using _ = await openOperator(...tags);
  const publisher = createPublisher(url, { log, window: 16 });
  const batch = [...messages(tags[0], 50), ...messages(tags[1], 50)];
  const outcomes = await publisher.publish(batch);
  expect(outcomes).toEqual(batch.map(({ key }) => ({ key, outcome: 'confirmed' })));

  const puller = createPuller(url, tags, { log });
  const seen: string[] = [];
  const stop = new AbortController();
  for (let index = 0; index < 100; index += 1) {
    const delivery = await puller.next(stop.signal);
    seen.push(`${delivery?.tag} ${delivery?.body.toString()}`);
    expect(delivery?.ack()).toBe('sent');
    expect(delivery?.ack()).toBe('lost');
  }
  expect(new Set(seen).size).toBe(100);
  // Both queues were served from the beginning.
  expect(new Set(seen.slice(0, 4).map((line) => line.split(' ')[0])).size).toBe(2);
  const idle = puller.next(stop.signal);
  stop.abort();
  expect(await idle).toBeNull();
  await puller.close();
  await publisher.close();
});

test('a queue that was deleted returns its message, and the next publish makes it again', async () => {
  const tag = freshTag();
  await using operator = await openOperator(tag);
  const publisher = createPublisher(url, { log });
  expect(await publisher.publish(messages(tag, 1))).toMatchObject([{ outcome: 'confirmed' }]);
  await operator.with((channel) => channel.deleteQueue(tagQueue(tag)));
  expect(await publisher.publish(messages(tag, 2))).toMatchObject([
    { outcome: 'returned' },
    { outcome: 'returned' },
  ]);
  expect(await publisher.publish(messages(tag, 1))).toMatchObject([{ outcome: 'confirmed' }]);
  await publisher.close();
});

test('a tag whose queue exists with other arguments is parked alone, and taken up again when that is mended', async () => {
  const [bad, good] = [freshTag(), freshTag()];
  await using operator = await openOperator(bad, good);
  await operator.with((channel) => channel.assertQueue(tagQueue(bad), { durable: true, messageTtl: 1 }));
  const publisher = createPublisher(url, { log, parkMs: 50 });
  const outcomes = await publisher.publish([...messages(bad, 2), ...messages(good, 2)]);
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['returned', 'returned', 'confirmed', 'confirmed']);
  expect(outcomes[0]?.reason).toMatch(/^parked: queue sonar\.tag\..* exists with other arguments/);
  expect([...publisher.parked().keys()]).toEqual([bad]);
  await operator.with((channel) => channel.deleteQueue(tagQueue(bad)));
  const deadline = performance.now() + 10_000;
  let outcome = 'returned';
  while (outcome === 'returned' && performance.now() < deadline)
    outcome = (await publisher.publish(messages(bad, 1)))[0]?.outcome ?? '';
  expect(outcome).toBe('confirmed');
  await publisher.close();
});

test('a clock that is set back an hour holds up no tag, no queue and no new connection', async () => {
  const [bad, missing] = [freshTag(), freshTag()];
  await using operator = await openOperator(bad, missing);
  await operator.with((channel) => channel.assertQueue(tagQueue(bad), { durable: true, messageTtl: 1 }));
  const publisher = createPublisher(url, { log, parkMs: 50 });
  const puller = createPuller(url, [missing], { log, missingMs: 50 });
  const nowhere = createPublisher('amqp://127.0.0.1:1/', { log });
  await publisher.publish(messages(bad, 1));
  await puller.next(AbortSignal.timeout(100));
  await nowhere.publish(messages(bad, 1));
  const set = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
  try {
    await operator.with((channel) => channel.deleteQueue(tagQueue(bad)));
    const deadline = performance.now() + 10_000;
    let outcome = 'returned';
    while (outcome === 'returned' && performance.now() < deadline)
      outcome = (await publisher.publish(messages(bad, 1)))[0]?.outcome ?? '';
    expect(outcome).toBe('confirmed');
    await publisher.publish(messages(missing, 1));
    expect((await puller.next(AbortSignal.timeout(10_000)))?.ack()).toBe('sent');
    expect(await nowhere.publish(messages(bad, 1))).toMatchObject([{ outcome: 'lost' }]);
  } finally {
    set.mockRestore();
    await Promise.all([publisher.close(), puller.close(), nowhere.close()]);
  }
});

test('a broker that does not answer gives lost, with the address but not the password', async () => {
  const publisher = createPublisher('amqp://user:hidden@127.0.0.1:1/', { log });
  const [published] = await publisher.publish(messages(freshTag(), 1));
  expect(published).toMatchObject({ outcome: 'lost' });
  expect(published?.reason).toContain('127.0.0.1:1');
  expect(published?.reason).not.toContain('hidden');
  await publisher.close();
});

test('a connection that breaks under the publisher costs no message', async () => {
  const tag = freshTag();
  await using operator = await openOperator(tag);
  await using relay = await openRelay(url);
  const publisher = createPublisher(relay.url, { log });
  expect(await publisher.publish(messages(tag, 1))).toMatchObject([{ outcome: 'confirmed' }]);
  const cut = relay.cutAfter(100_000);
  const outcomes = await publisher.publish(messages(tag, 2_000));
  await cut;
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['confirmed']));
  const { messageCount } = await operator.with((channel) => channel.checkQueue(tagQueue(tag)));
  expect(messageCount).toBeGreaterThanOrEqual(2_001);
  await publisher.close();
});

test('a queue that is missing counts as empty, and its messages come once it is there', async () => {
  const [missing, present] = [freshTag(), freshTag()];
  await using _ = await openOperator(missing, present);
  const publisher = createPublisher(url, { log });
  await publisher.publish(messages(present, 1));
  const puller = createPuller(url, [missing, present], { log, missingMs: 20 });
  const { signal } = new AbortController();
  const held = await puller.next(signal);
  expect(held?.tag).toBe(present);
  await publisher.publish(messages(missing, 1));
  const late = await puller.next(signal);
  expect(late?.tag).toBe(missing);
  // The 404 of the missing queue closed a channel, but not the one that holds a message.
  expect(held?.held).toBe(true);
  expect(held?.ack()).toBe('sent');
  expect(late?.ack()).toBe('sent');
  await puller.close();
  await publisher.close();
});

test('after a lost connection an ack is a lost one, and the message comes again on the next generation', async () => {
  const tag = freshTag();
  await using _ = await openOperator(tag);
  const publisher = createPublisher(url, { log });
  await publisher.publish(messages(tag, 1));
  await using relay = await openRelay(url);
  const puller = createPuller(relay.url, [tag], { log });
  const { signal } = new AbortController();
  const first = await puller.next(signal);
  expect(first).toMatchObject({ redelivered: false, held: true });
  relay.cut();
  const second = await puller.next(signal);
  expect(first?.held).toBe(false);
  expect(first?.ack()).toBe('lost');
  expect(first?.nack({ requeue: true })).toBe('lost');
  expect(second).toMatchObject({ redelivered: true, held: true });
  expect(second?.ack()).toBe('sent');
  await puller.close();
  await publisher.close();
});

test('what is requeued comes again, and what is refused or expires is read as a dead letter', async () => {
  const [refused, expiring] = [freshTag(), freshTag()];
  await using _ = await openOperator(refused, expiring);
  const publisher = createPublisher(url, { log });
  const shortLived = createPublisher(url, { log, messageTtlMs: 1 });
  const letters = new Map<string, DeadLetter>();
  const both = Promise.withResolvers<void>();
  const [one] = messages(refused, 1);
  const [other] = messages(expiring, 1);
  if (one === undefined || other === undefined) throw new Error('no messages');
  const reader = readDeadLetters(
    url,
    async (letter) => {
      letters.set(letter.messageId ?? '', letter);
      if (letters.has(one.key) && letters.has(other.key)) both.resolve();
    },
    { log },
  );
  await publisher.publish([one]);
  await shortLived.publish([other]);
  const puller = createPuller(url, [refused], { log });
  const { signal } = new AbortController();
  expect((await puller.next(signal))?.nack({ requeue: true })).toBe('sent');
  const again = await puller.next(signal);
  expect(again?.redelivered).toBe(true);
  expect(again?.nack({ requeue: false })).toBe('sent');
  await reader.start();
  await both.promise;
  await reader.stop();
  expect(letters.get(one.key)).toMatchObject({ reason: 'rejected', tag: refused, body: one.body });
  expect(letters.get(other.key)).toMatchObject({ reason: 'expired', tag: expiring });
  await Promise.all([puller.close(), publisher.close(), shortLived.close()]);
});

test('the topology is what the design says', async () => {
  const tag = freshTag();
  await using operator = await openOperator(tag);
  const publisher = createPublisher(url, { log });
  await publisher.publish(messages(tag, 3));
  await operator.with(async (channel) => {
    expect(await channel.checkQueue(tagQueue(tag))).toMatchObject({ messageCount: 3 });
    await channel.checkQueue(deadLetterQueue);
    await channel.checkExchange(dispatchExchange);
  });
  await publisher.close();
});

test('a quorum queue serves like a classic one', async () => {
  const tag = freshTag();
  await using _ = await openOperator(tag);
  const publisher = createPublisher(url, { log, queueType: 'quorum' });
  expect(await publisher.publish(messages(tag, 3))).toMatchObject(
    Array.from({ length: 3 }, () => ({ outcome: 'confirmed' })),
  );
  const puller = createPuller(url, [tag], { log });
  const { signal } = new AbortController();
  expect((await puller.next(signal))?.nack({ requeue: true })).toBe('sent');
  for (let index = 0; index < 3; index += 1) expect((await puller.next(signal))?.ack()).toBe('sent');
  await puller.close();
  await publisher.close();
});

test('publish calls take turns, and an empty batch is nothing', async () => {
  const tag = freshTag();
  await using _ = await openOperator(tag);
  const publisher = createPublisher(url, { log });
  const outcomes = await Promise.all([
    publisher.publish(messages(tag, 2)),
    publisher.publish([]),
    publisher.publish(messages(tag, 2)),
  ]);
  expect(outcomes.map((batch) => batch.map(({ outcome }) => outcome))).toEqual([
    ['confirmed', 'confirmed'],
    [],
    ['confirmed', 'confirmed'],
  ]);
  await publisher.close();
});
