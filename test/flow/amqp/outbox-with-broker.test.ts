// The outbox against a real broker: several publishers at once, and a tag that cannot be declared.
import { connect } from 'amqplib';
import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import { tagQueue } from '#sonar/contracts/names.ts';
import { newId } from '#sonar/platform/ids.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { createPuller } from '#sonar/transport/amqp-consumer.ts';
import { createPublisher } from '#sonar/transport/amqp-publisher.ts';
import { useClonedDatabase } from '../../fixtures/cloned-database.ts';
import { eachLine } from '../../fixtures/definition-texts.ts';
import { openLaboratory } from '../../fixtures/laboratory.ts';
import { useObjectStore } from '../../fixtures/object-store.ts';
import { query } from '../../fixtures/query.ts';

const url = process.env.SONAR_TEST_AMQP_URL as string;
const log = createLogger('test', 'silent');
const clone = useClonedDatabase();
const objects = useObjectStore();
const freshTag = () => `t${newId().replaceAll('-', '').slice(-20)}`;

/** Its queues are gone afterwards. */
async function broker(...tags: string[]) {
  const connection = await connect(url);
  const channel = await connection.createChannel();
  return {
    channel,
    async [Symbol.asyncDispose]() {
      for (const tag of tags) await channel.deleteQueue(tagQueue(tag));
      await connection.close();
    },
  };
}

/** So many tasks of each tag are Published, their events in the queue. */
async function withDeliveries(tags: readonly string[], count: number) {
  const lab = openLaboratory(clone, objects, { SONAR_PUBLISH_WINDOW: 16 });
  for (const tag of tags) {
    await lab.worker({ name: tag, tags: [tag] });
    const source = eachLine.replace('each-line', tag).replace('tags: [t]', `tags: [${tag}]`);
    const lines = Array.from({ length: count }, (_, n) => `l${n}`);
    await lab.plan(await lab.scan(source, { inputs: { lines } }));
  }
  await lab.place();
  return lab;
}

test('several publishers at once bring each message into its queue once', async () => {
  const tag = freshTag();
  await using _ = await broker(tag);
  const lab = await withDeliveries([tag], 100);
  const publishers = Array.from({ length: 4 }, () => createPublisher(url, { log }));
  await Promise.all(
    publishers.map(async (publisher) => {
      const one = lab.with({ database: clone.open(2), executorId: newId() });
      while ((await one.publish(publisher)) > 0);
    }),
  );
  await Promise.all(publishers.map((publisher) => publisher.close()));
  const puller = createPuller(url, [tag], { log });
  const attempts = new Set<string>();
  const { signal } = new AbortController();
  for (let pulled = 0; pulled < 100; pulled += 1) {
    const delivery = await puller.next(signal);
    attempts.add((JSON.parse(String(delivery?.body)) as DispatchMessage).attemptId);
    delivery?.ack();
  }
  await puller.close();
  expect(attempts.size).toBe(100);
  expect(await clone.database.rows(query`select 1 as one from sonar.outbox_delivery_queue`)).toEqual([]);
  expect(
    await clone.database.rows(
      query`select count(*)::integer as confirmed from sonar.attempt where confirmed_at is not null`,
    ),
  ).toEqual([{ confirmed: 100 }]);
});

test('events of a tag that cannot be declared wait with the reason; those of other tags go out', async () => {
  const [bad, good] = [freshTag(), freshTag()];
  await using operator = await broker(bad, good);
  await operator.channel.assertQueue(tagQueue(bad), { durable: true, messageTtl: 1 });
  const lab = await withDeliveries([bad, good], 5);
  const publisher = createPublisher(url, { log, parkMs: 1 });
  expect(await lab.publish(publisher)).toBe(10);
  const waiting = await clone.database.rows<{ tag: string; error: string; waits: boolean }>(query`
    select e.tag, q.last_error as error, q.available_at > clock_timestamp() as waits
    from sonar.outbox_delivery_queue q join sonar.outbox_events e using (event_id)`);
  expect(waiting).toHaveLength(5);
  expect(waiting[0]).toEqual({
    tag: bad,
    error: expect.stringMatching(/^parked: queue sonar\.tag\..* exists with other arguments/),
    waits: true,
  });
  expect(new Set(waiting.map(({ tag }) => tag))).toEqual(new Set([bad]));
  expect((await operator.channel.checkQueue(tagQueue(good))).messageCount).toBe(5);
  await operator.channel.deleteQueue(tagQueue(bad));
  await clone.database.execute(
    query`update sonar.outbox_delivery_queue set available_at = clock_timestamp()`,
  );
  expect(await lab.publish(publisher)).toBe(5);
  await publisher.close();
  expect((await operator.channel.checkQueue(tagQueue(bad))).messageCount).toBe(5);
});
