// Only what the broker confirmed leaves the queue, and only who holds the claim may say so.
import { type DispatchMessage, dispatchMessageSchema } from '#sonar/contracts/dispatch-message.ts';
import type { ClaimToken } from '#sonar/contracts/ids.ts';
import { publishOutbox } from '#sonar/flow/publish-outbox.ts';
import { newId } from '#sonar/platform/ids.ts';
import { deriveCredential, parseMasterKeys } from '#sonar/platform/signing.ts';
import { claimDeliveries } from '#sonar/stores/outbox.ts';
import type { Published } from '#sonar/transport/amqp-publisher.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { type Laboratory, openLaboratory, testKeys } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { scriptedPublisher } from '../fixtures/scripted-publisher.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

/** A laboratory with that many tasks Published and their events in the queue. */
async function withDeliveries(count: number) {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(eachLine, {
    inputs: { lines: Array.from({ length: count }, (_, n) => `l${n}`) },
  });
  await lab.plan(scan);
  await lab.place();
  return { lab, worker, scan };
}

interface QueueRow {
  attempts: number;
  last_error: string | null;
  claim_token: string | null;
  waits: boolean;
}
const queue = () =>
  clone.database.rows<QueueRow>(query`
    select attempts, last_error, claim_token, available_at > clock_timestamp() as waits
    from sonar.outbox_delivery_queue order by event_id`);
const ledger = () =>
  clone.database.rows<{ published: boolean; confirmed: boolean }>(query`
    select e.published_at is not null as published, a.confirmed_at is not null as confirmed
    from sonar.outbox_events e join sonar.attempt a using (attempt_id) order by e.event_id`);
const makeAvailable = () =>
  clone.database.execute(
    query`update sonar.outbox_delivery_queue set available_at = clock_timestamp() - interval '1 second'`,
  );

test('what is confirmed leaves the queue and is marked in the ledger', async () => {
  const { lab } = await withDeliveries(3);
  const publisher = scriptedPublisher();
  expect(await lab.publish(publisher)).toBe(3);
  expect(publisher.sent).toHaveLength(3);
  expect(await queue()).toEqual([]);
  expect(await ledger()).toEqual(Array.from({ length: 3 }, () => ({ published: true, confirmed: true })));
  expect(await lab.publish(publisher)).toBe(0);
});

test('the message is the stored command with the credential of its attempt, which no table holds', async () => {
  const { lab } = await withDeliveries(1);
  const publisher = scriptedPublisher();
  await lab.publish(publisher);
  const message = JSON.parse(String(publisher.sent[0]?.body)) as DispatchMessage;
  expect(dispatchMessageSchema.strict().parse(message)).toEqual(message);
  expect(publisher.sent[0]?.tag).toBe('t');
  const key = testKeys.get(testKeys.currentId);
  expect(message.credential).toBe(deriveCredential(key!, 'attempt', message.attemptId));
});

test.each<Published['outcome']>(['returned', 'nacked', 'lost'])(
  'a message that is %s waits with a backoff that doubles, and goes out in the end',
  async (outcome) => {
    const { lab } = await withDeliveries(1);
    expect(await lab.publish(scriptedPublisher(() => outcome))).toBe(1);
    expect(await queue()).toEqual([
      { attempts: 1, last_error: `scripted: ${outcome}`, claim_token: null, waits: true },
    ]);
    expect(await lab.publish()).toBe(0);
    await makeAvailable();
    await lab.publish(scriptedPublisher(() => outcome));
    const [row] = await clone.database.rows<{ seconds: number }>(query`
      select extract(epoch from available_at - clock_timestamp())::float as seconds from sonar.outbox_delivery_queue`);
    expect(row?.seconds).toBeGreaterThan(5);
    expect(row?.seconds).toBeLessThanOrEqual(10);
    await makeAvailable();
    await lab.publish();
    expect(await queue()).toEqual([]);
    expect(await ledger()).toEqual([{ published: true, confirmed: true }]);
  },
);

test('in a window with all outcomes each message gets its own', async () => {
  const { lab } = await withDeliveries(4);
  const outcomes: Published['outcome'][] = ['confirmed', 'returned', 'nacked', 'lost'];
  let next = 0;
  await lab.publish(scriptedPublisher(() => outcomes[next++] ?? 'confirmed'));
  expect((await queue()).map((row) => row.last_error)).toEqual([
    'scripted: returned',
    'scripted: nacked',
    'scripted: lost',
  ]);
  expect((await ledger()).map((row) => row.published)).toEqual([true, false, false, false]);
});

test('the event of an attempt that is no longer current is dropped, not sent', async () => {
  const { lab, worker, scan } = await withDeliveries(2);
  const [first, running] = await lab.published(scan);
  await clone.database.execute(query`
    update sonar.task set status = 'Pending', attempt_id = null where task_id = ${first!.task_id}`);
  await lab.place();
  await lab.start(running!, worker);
  const [second] = await lab.published(scan);
  const publisher = scriptedPublisher();
  expect(await lab.publish(publisher)).toBe(3);
  const sent = publisher.sent.map(
    (message) => (JSON.parse(String(message.body)) as DispatchMessage).attemptId,
  );
  expect(sent).toEqual([second!.attempt_id]);
  expect(await queue()).toEqual([]);
  expect((await ledger()).filter((row) => row.published)).toHaveLength(1);
});

test('publishers at once share the queue without taking a message twice', async () => {
  await withDeliveries(60);
  const publishers = Array.from({ length: 5 }, () => scriptedPublisher());
  const lab = openLaboratory(clone, objects, { SONAR_PUBLISH_WINDOW: 10 });
  const drain = async (database: Laboratory['database'], publisher: (typeof publishers)[number]) => {
    while ((await lab.with({ database, executorId: newId() }).publish(publisher)) > 0);
  };
  await Promise.all(publishers.map((publisher) => drain(clone.open(2), publisher)));
  const keys = publishers.flatMap((publisher) => publisher.sent.map((message) => message.key));
  expect(keys).toHaveLength(60);
  expect(new Set(keys).size).toBe(60);
  expect(await queue()).toEqual([]);
});

test('when a lease is over another publisher takes the message, and the first has no say any more', async () => {
  const { lab } = await withDeliveries(1);
  const other = lab.with({ executorId: newId() });
  const tooLate = scriptedPublisher(async (): Promise<Published['outcome']> => {
    await makeAvailable();
    expect(await other.publish(scriptedPublisher(() => 'nacked'))).toBe(1);
    return 'confirmed';
  });
  await lab.publish(tooLate);
  expect(await queue()).toEqual([
    { attempts: 2, last_error: 'scripted: nacked', claim_token: null, waits: true },
  ]);
  expect(await ledger()).toEqual([{ published: false, confirmed: false }]);
});

test('a publisher that comes too late cannot put back what another one has delivered', async () => {
  const { lab } = await withDeliveries(1);
  const other = lab.with({ executorId: newId() });
  const tooLate = scriptedPublisher(async (): Promise<Published['outcome']> => {
    await makeAvailable();
    await other.publish();
    return 'lost';
  });
  await lab.publish(tooLate);
  expect(await queue()).toEqual([]);
  expect(await ledger()).toEqual([{ published: true, confirmed: true }]);
});

test('a publisher that comes too late cannot end the claim of another one', async () => {
  const { lab } = await withDeliveries(1);
  const token = newId<ClaimToken>();
  const tooLate = scriptedPublisher(async (): Promise<Published['outcome']> => {
    await makeAvailable();
    await claimDeliveries(clone.database, {
      token,
      executorId: newId(),
      leaseMs: 60_000,
      limit: 1,
      maxBytes: 1_000_000,
    });
    return 'nacked';
  });
  await lab.publish(tooLate);
  expect(await queue()).toEqual([{ attempts: 2, last_error: null, claim_token: token, waits: true }]);
});

test('a publisher that dies with the message keeps it back for the lease only', async () => {
  const { lab } = await withDeliveries(1);
  const dying = scriptedPublisher(() => Promise.reject(new Error('the process is gone')));
  await expect(lab.publish(dying)).rejects.toThrow('the process is gone');
  expect(await lab.publish()).toBe(0);
  await makeAvailable();
  expect(await lab.publish()).toBe(1);
  expect(await queue()).toEqual([]);
});

test('a message whose master key is not at hand waits and says so, and its neighbours go out', async () => {
  const { lab, scan } = await withDeliveries(2);
  const [first] = await lab.published(scan);
  await clone.database.execute(
    query`update sonar.attempt set key_id = 'lost' where attempt_id = ${first!.attempt_id}`,
  );
  await lab.publish();
  expect(await queue()).toMatchObject([
    { last_error: 'master key "lost" is not in SONAR_MASTER_KEYS', waits: true },
  ]);
  const keys = parseMasterKeys(`lost:${Buffer.alloc(32, 7).toString('base64')}`);
  await makeAvailable();
  await publishOutbox({ ...lab, keys, publisher: scriptedPublisher() });
  expect(await queue()).toEqual([]);
});

test('the claim of a publisher that died between the confirm and the end of its rows is taken over: sent twice, done once', async () => {
  const { lab } = await withDeliveries(3);
  const broker = scriptedPublisher();
  const dying = faultyDatabase(clone.database, (name) => name === 'outbox.finish');
  await expect(lab.with({ database: dying }).publish(broker)).rejects.toThrow('injected fault');
  expect(await ledger()).toEqual(Array.from({ length: 3 }, () => ({ published: false, confirmed: false })));
  await makeAvailable();
  expect(await lab.with({ executorId: newId() }).publish(broker)).toBe(3);
  const keys = broker.sent.map((message) => message.key);
  expect([keys.length, new Set(keys).size]).toEqual([6, 3]);
  // The same attempt in both messages: whoever gets the second one is told to skip it.
  const attempts = broker.sent.map(
    (message) => (JSON.parse(String(message.body)) as DispatchMessage).attemptId,
  );
  expect(new Set(attempts).size).toBe(3);
  expect(await queue()).toEqual([]);
  expect(await ledger()).toEqual(Array.from({ length: 3 }, () => ({ published: true, confirmed: true })));
});

test('hot tables are cleaned by what is dead in them, not by a share of what they hold', async () => {
  const rows = await clone.database.rows<{ name: string; options: string }>(query`
    select relname as name, array_to_string(reloptions, ' ') as options from pg_class
    where relkind = 'r' and reloptions is not null order by relname`);
  const options = Object.fromEntries(rows.map(({ name, options: set }) => [name, set]));
  for (const name of [
    'outbox_delivery_queue',
    'task_count_delta',
    'worker_incarnation',
    'placement',
    'executor',
  ])
    expect([name, options[name]]).toEqual([
      name,
      expect.stringContaining('autovacuum_vacuum_scale_factor=0 '),
    ]);
  for (const name of ['task', 'attempt', 'outbox_events', 'finalization'])
    expect([name, options[name]]).toEqual([
      name,
      expect.stringContaining('autovacuum_vacuum_scale_factor=0.02'),
    ]);
});
