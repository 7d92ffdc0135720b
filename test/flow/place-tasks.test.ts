// Placement never gives more than there is room for, and a task is Published together with its event or not at all.
import { type Dispatch, dispatchSchema } from '#sonar/contracts/dispatch-message.ts';
import { placementIsWanted, requestPlacement } from '#sonar/flow/place-tasks.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachHost, eachLine } from '../fixtures/definition-texts.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const lines = (count: number) => Array.from({ length: count }, (_, index) => `line-${index}`);
const named = (name: string, tags: string, more = '') =>
  eachLine.replace('each-line', name).replace('tags: [t]', `tags: [${tags}]${more}`);

async function inFlight() {
  const rows = await clone.database.rows<{ tag: string; name: string; attempts: number }>(query`
    select a.tag, s.definition_name as name, count(*)::integer as attempts
    from sonar.attempt a join sonar.scan s using (scan_id) where a.ended_at is null group by 1, 2 order by 1, 2`);
  const sum = (fits: (row: (typeof rows)[number]) => boolean) =>
    rows.filter(fits).reduce((total, row) => total + row.attempts, 0);
  return {
    tag: (tag: string) => sum((row) => row.tag === tag),
    definition: (name: string) => sum((row) => row.name === name),
    all: sum(() => true),
  };
}

/** What a task's publication consists of, counted table by table. */
async function publication() {
  const [row] = await clone.database.rows<Record<string, number>>(query`
    select (select count(*)::integer from sonar.task where status = 'Published') as published,
      (select count(*)::integer from sonar.attempt) as attempts,
      (select count(*)::integer from sonar.outbox_events) as events,
      (select count(*)::integer from sonar.outbox_delivery_queue) as deliveries`);
  return row;
}

test('many placers at once never go over the room of a tag, of the fleet or of a step', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker({ name: 'both', tags: ['t', 'u'], slots: 3 });
  await lab.worker({ name: 'only-u', tags: ['u'], slots: 2 });
  await lab.worker({ name: 'only-v', tags: ['v'], slots: 6 });
  const scans = [
    await lab.scan(named('wide', 't, u'), { inputs: { lines: lines(40) } }),
    await lab.scan(named('narrow', 'v', '\n    maxConcurrent: 4'), { inputs: { lines: lines(40) } }),
    await lab.scan(named('other', 't'), { inputs: { lines: lines(40) } }),
  ];
  for (const scan of scans) await lab.plan(scan);
  const placers = Array.from({ length: 6 }, () => lab.with({ database: clone.open(2), executorId: newId() }));
  for (let round = 0; round < 4; round += 1) {
    await Promise.all(placers.map((placer) => placer.place()));
    const flying = await inFlight();
    expect(flying.tag('t')).toBeLessThanOrEqual(2 * 3);
    expect(flying.tag('u')).toBeLessThanOrEqual(2 * 5);
    expect(flying.tag('t') + flying.tag('u')).toBe(16);
    expect(flying.definition('narrow')).toBe(4);
    expect(flying.all).toBeLessThanOrEqual(2 * 11);
    expect(await publication()).toEqual({
      published: flying.all,
      attempts: flying.all,
      events: flying.all,
      deliveries: flying.all,
    });
  }
});

test('the fleet is the bound where its tags overlap: each physical worker counts once', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker({ name: 'all', tags: ['t', 'u', 'v'], slots: 2 });
  const scans = await Promise.all(
    ['t', 'u', 'v'].map((tag) => lab.scan(named(`on-${tag}`, tag), { inputs: { lines: lines(10) } })),
  );
  for (const scan of scans) await lab.plan(scan);
  await lab.place();
  await lab.place();
  expect((await inFlight()).all).toBe(4);
});

test('capacity comes back when an attempt ends, and a retried task gets a fresh attempt', async () => {
  const lab = openLaboratory(clone, objects, { SONAR_CAPACITY_MULTIPLE: 1 });
  const worker = await lab.worker({ slots: 1 });
  const scan = await lab.scan(eachLine, { inputs: { lines: ['a', 'b'] } });
  await lab.plan(scan);
  await lab.place();
  const [first] = await lab.published(scan);
  expect((await lab.place())?.placed).toEqual([]);
  await lab.start(first!, worker);
  await lab.release(first!, worker);
  expect((await lab.place())?.placed).toEqual([{ scanId: scan.scan_id, step: 'each', tag: 't', tasks: 1 }]);
  const [again] = await lab.published(scan);
  expect(again).toMatchObject({ task_id: first!.task_id });
  expect(again!.attempt_id).not.toBe(first!.attempt_id);
});

test.each(['placement.dispatch', 'placement.served'])(
  'a crash before %s leaves no task Published and no event, and the next pass places them',
  async (statement) => {
    const lab = openLaboratory(clone, objects);
    await lab.worker();
    const scan = await lab.scan(eachLine, { inputs: { lines: lines(5) } });
    await lab.plan(scan);
    const crashing = lab.with({ database: faultyDatabase(clone.database, (name) => name === statement) });
    // A fault of one scan's part is logged and the pass goes on; any other ends the pass. Neither leaves half of it.
    const [outcome] = await Promise.allSettled([crashing.place()]);
    expect(outcome.status).toBe(statement === 'placement.served' ? 'rejected' : 'fulfilled');
    expect(await publication()).toEqual({ published: 0, attempts: 0, events: 0, deliveries: 0 });
    await lab.place();
    expect(await publication()).toEqual({ published: 5, attempts: 5, events: 5, deliveries: 5 });
  },
);

test('when PostgreSQL refuses the event, the task stays Pending', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(2) } });
  await lab.plan(scan);
  await clone.database.script(
    'alter table sonar.outbox_delivery_queue add constraint refuse check (attempts > 0)',
  );
  try {
    expect((await lab.place())?.placed).toEqual([]);
    expect(await publication()).toEqual({ published: 0, attempts: 0, events: 0, deliveries: 0 });
  } finally {
    await clone.database.script('alter table sonar.outbox_delivery_queue drop constraint refuse');
  }
});

test('a step that no eligible worker serves is marked as starved, and unmarked when one comes', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker({ name: 'other', tags: ['u'] });
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(1) } });
  await lab.plan(scan);
  const starved = async () => {
    const [row] = await clone.database.rows<{ since: string | null }>(
      query`select starved_since as since from sonar.scan_step where scan_id = ${scan.scan_id}`,
    );
    return row?.since;
  };
  await lab.place();
  const since = await starved();
  expect(since).toEqual(expect.any(String));
  await lab.place();
  expect(await starved()).toBe(since);
  await lab.worker();
  await lab.place();
  expect(await starved()).toBeNull();
  expect(await lab.published(scan)).toHaveLength(1);
});

test.each([
  ['drains', query`update sonar.worker_incarnation set draining = true`],
  ['was replaced', query`update sonar.worker_incarnation set replaced_at = now()`],
  [
    'has not pulsed for 36 s',
    query`update sonar.worker_incarnation set pulsed_at = now() - interval '36 seconds'`,
  ],
])('a worker that %s is given nothing', async (_what, change) => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  await clone.database.execute(change);
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(1) } });
  await lab.plan(scan);
  expect((await lab.place())?.placed).toEqual([]);
});

test('an item that is out of scope by now is refused at the last gate, and its neighbours are placed', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(eachHost, { inputs: { hosts: ['a.example.com', 'b.example.com'] } });
  await lab.plan(scan);
  await clone.database.execute(
    query`update sonar.task set item = '"b.example.net"' where item = '"b.example.com"'`,
  );
  expect(await lab.place()).toMatchObject({ refused: 1, placed: [{ tasks: 1 }] });
  expect((await lab.tasks(scan)).map((task) => [task.item, task.status, task.failure_code])).toEqual([
    ['a.example.com', 'Published', null],
    ['b.example.net', 'Failed', 'item_refused'],
  ]);
});

test('an item that would be read as an option fails alone', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: ['a', '--script=evil', 'b'] } });
  await lab.plan(scan);
  await lab.place();
  expect((await lab.tasks(scan)).map((task) => [task.item, task.status, task.failure_code])).toEqual([
    ['a', 'Published', null],
    ['--script=evil', 'Failed', 'item_refused'],
    ['b', 'Published', null],
  ]);
});

test('a task whose time has not come is not placed, and neither is one of a scan that does not run', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(2) } });
  await lab.plan(scan);
  await clone.database.execute(
    query`update sonar.task set not_before = clock_timestamp() + interval '1 hour' where item_ordinal = 0`,
  );
  await lab.place();
  expect((await lab.tasks(scan)).map((task) => task.status)).toEqual(['Pending', 'Published']);
  await clone.database.execute(query`update sonar.task set not_before = null`);
  await clone.database.execute(query`update sonar.scan set status = 'Paused'`);
  expect((await lab.place())?.placed).toEqual([]);
});

test('a claim that is held keeps others out; one whose holder died is taken over when its lease is over', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(1) } });
  await lab.plan(scan);
  await requestPlacement(clone.database);
  await clone.database.execute(query`
    update sonar.placement set claim_token = ${newId()}, claimed_by = ${newId()}, claim_expires_at = clock_timestamp() + interval '1 minute'`);
  expect(await lab.place()).toBeUndefined();
  expect(await placementIsWanted(clone.database)).toBe(true);
  await clone.database.execute(
    query`update sonar.placement set claim_expires_at = clock_timestamp() - interval '1 second'`,
  );
  expect((await lab.place())?.placed).toHaveLength(1);
  expect(await placementIsWanted(clone.database)).toBe(false);
  expect(
    await clone.database.rows(
      query`select served = (select last_value from sonar.placement_request) as met, claim_token from sonar.placement`,
    ),
  ).toEqual([{ met: true, claim_token: null }]);
});

test('the event carries the whole command of the attempt, and no credential', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: ['a b; c'] } });
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  const [event] = await clone.database.rows<{ payload: Dispatch }>(
    query`select payload from sonar.outbox_events`,
  );
  expect(dispatchSchema.strict().parse(event?.payload)).toMatchObject({
    attemptId: attempt!.attempt_id,
    dispatchKey: `${scan.scan_id}/${attempt!.task_id}/each`,
    command: [[{ kind: 'text', text: 'probe' }], [{ kind: 'text', text: 'a b; c' }]],
  });
});
