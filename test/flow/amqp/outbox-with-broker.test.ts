// The outbox against a real broker: several publishers at once, and a tag that cannot be declared.
import { connect } from 'amqplib';
import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import { tagQueue } from '#sonar/contracts/names.ts';
import { newId } from '#sonar/platform/ids.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { parkedAmong } from '#sonar/stores/parked-tags.ts';
import { createPuller } from '#sonar/transport/amqp-consumer.ts';
import { createPublisher } from '#sonar/transport/amqp-publisher.ts';
import { useClonedDatabase } from '../../fixtures/cloned-database.ts';
import { eachLine } from '../../fixtures/definition-texts.ts';
import { openLaboratory } from '../../fixtures/laboratory.ts';
import { useObjectStore } from '../../fixtures/object-store.ts';
import { seconds, timePasses } from '../../fixtures/passing-time.ts';
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

test('tasks of a tag that cannot be declared go back at once and are not placed there again; those of other tags go out', async () => {
  const [bad, good] = [freshTag(), freshTag()];
  await using operator = await broker(bad, good);
  await operator.channel.assertQueue(tagQueue(bad), { durable: true, messageTtl: 1 });
  const lab = await withDeliveries([bad, good], 5);
  const publisher = createPublisher(url, { log, parkMs: 1 });
  expect(await lab.publish(publisher)).toBe(10);
  const parked = {
    tag: bad,
    end_reason: 'recovered',
    recovery_rule: 'tag_parked',
    status: 'Pending',
    tasks: 5,
  };
  const sent = { tag: good, end_reason: null, recovery_rule: null, status: 'Published', tasks: 5 };
  expect(
    await clone.database.rows(query`
      select a.tag, a.end_reason, a.recovery_rule, t.status, count(*) as tasks from sonar.attempt a join sonar.task t using (task_id)
      group by 1, 2, 3, 4 order by a.end_reason nulls last`),
  ).toEqual([parked, sent]);
  expect(await clone.database.rows(query`select event_id from sonar.outbox_delivery_queue`)).toEqual([]);
  expect((await operator.channel.checkQueue(tagQueue(good))).messageCount).toBe(5);
  await lab.place();
  expect(await lab.publish(publisher)).toBe(0);
  const reasons = await parkedAmong(clone.database, [bad, good]);
  expect([...reasons.keys()]).toEqual([bad]);
  expect(reasons.get(bad)).toMatch(/^parked: queue sonar\.tag\..* exists with other arguments/);
  await operator.channel.deleteQueue(tagQueue(bad));
  await timePasses(clone.database, seconds(61));
  await clone.database.execute(query`update sonar.worker_incarnation set pulsed_at = now()`);
  await lab.place();
  expect(await lab.publish(publisher)).toBe(5);
  await publisher.close();
  expect((await operator.channel.checkQueue(tagQueue(bad))).messageCount).toBe(5);
});
