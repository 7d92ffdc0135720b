// What died in the broker is placed anew, unless somebody has it already.
import { returnDeadLetter } from '#sonar/flow/return-dead-letter.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { type DispatchedScan, dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const eventOf = async ({ attempt }: DispatchedScan): Promise<string> => {
  const [row] = await clone.database.rows<{ event_id: string }>(
    query`select event_id from sonar.outbox_events where attempt_id = ${attempt.attempt_id}`,
  );
  return row?.event_id ?? '';
};
const letter = ({ lab }: DispatchedScan, messageId: string | null, reason = 'expired') =>
  returnDeadLetter({ database: clone.database, log: lab.log }, { messageId, tag: 't', reason });
const makeDue = () => clone.database.execute(query`update sonar.task set not_before = null`);
const attempts = () =>
  clone.database.rows(query`
    select number, ended_at is not null as ended, end_reason from sonar.attempt order by number`);

test('an expired message gives its task back at once, for a fresh attempt', async () => {
  const work = await dispatchedScan(clone, objects);
  await letter(work, await eventOf(work));
  expect(await work.lab.tasks(work.scan)).toMatchObject([{ status: 'Pending', attempt_id: null, tag: null }]);
  expect((await work.lab.place())?.placed).toMatchObject([{ tasks: 1 }]);
  expect(await attempts()).toEqual([
    { number: 1, ended: true, end_reason: 'recovered' },
    { number: 2, ended: false, end_reason: null },
  ]);
});

test.each(['rejected', 'delivery_limit'])(
  'a message that died as %s waits a while before it is placed',
  async (reason) => {
    const work = await dispatchedScan(clone, objects);
    await letter(work, await eventOf(work), reason);
    expect(await work.lab.tasks(work.scan)).toMatchObject([{ status: 'Pending', attempt_id: null }]);
    expect((await work.lab.place())?.placed).toEqual([]);
    await makeDue();
    expect((await work.lab.place())?.placed).toMatchObject([{ tasks: 1 }]);
  },
);

test.each([
  ['without an id', null],
  ['whose id is no id of ours', 'message-1'],
  ['of an event that nobody knows', newId()],
])('a letter %s changes nothing', async (_what, messageId) => {
  const work = await dispatchedScan(clone, objects);
  const before = await work.lab.tasks(work.scan);
  await letter(work, messageId);
  expect(await work.lab.tasks(work.scan)).toEqual(before);
  expect(await attempts()).toEqual([{ number: 1, ended: false, end_reason: null }]);
});

test('a letter of an attempt that runs changes nothing', async () => {
  const work = await dispatchedScan(clone, objects);
  await work.lab.start(work.attempt, work.worker);
  await letter(work, await eventOf(work));
  expect(await work.lab.tasks(work.scan)).toMatchObject([
    { status: 'Running', attempt_id: work.attempt.attempt_id },
  ]);
  expect(await attempts()).toEqual([{ number: 1, ended: false, end_reason: null }]);
});

test('a letter that comes again, or late, leaves the attempt after it alone', async () => {
  const work = await dispatchedScan(clone, objects);
  const event = await eventOf(work);
  await letter(work, event);
  await letter(work, event);
  await work.lab.place();
  const [current] = await work.lab.published(work.scan);
  await letter(work, event);
  expect(await work.lab.tasks(work.scan)).toMatchObject([
    { status: 'Published', attempt_id: current!.attempt_id },
  ]);
  expect(current!.attempt_id).not.toBe(work.attempt.attempt_id);
});
