// Many reconcilers place while workers come, go and drain, and slots come free: whenever a pass commits, what it has
// placed was there to be given.
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const lines = Array.from({ length: 150 }, (_, index) => `line-${index}`);
const named = (name: string, tags: string, more = '') =>
  eachLine.replace('each-line', name).replace('tags: [t]', `tags: [${tags}]${more}`);

/** Draws that are the same in every run. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

const overcommitted = query`
  with worker as (
    select worker_name, tags, slots from sonar.worker_incarnation
    where replaced_at is null and not draining and pulsed_at > clock_timestamp() - interval '35 seconds'),
  room as (
    select tag, 2 * sum(slots) as room from worker, unnest(tags) as tag group by tag),
  placed as (
    -- Of this pass alone: none begins before the one before it has committed.
    select distinct tag from sonar.attempt where created_at >= transaction_timestamp()),
  flying as (
    select tag, scan_id, step from sonar.attempt where ended_at is null)
  select 'tag ' || p.tag as what from placed p left join room r using (tag)
  where (select count(*) from flying f where f.tag = p.tag) > coalesce(r.room, 0)
  union all
  select 'fleet' where exists (select from placed)
    and (select count(*) from flying) > (select coalesce(2 * sum(slots), 0) from worker)
  union all
  select 'step' from flying f join sonar.scan s using (scan_id)
  where s.definition_name = 'narrow' group by f.step having count(*) > 4`;

/** Looks before each commit of a pass; the pass holds its row, and whoever changes the fleet here takes it first. */
function judged(lab: Laboratory, seen: { passes: number; faults: unknown[] }): Laboratory {
  const database = clone.open(2);
  return lab.with({
    executorId: newId(),
    database: {
      ...database,
      transaction: (work) =>
        database.transaction(async (tx) => {
          const result = await work(tx);
          seen.faults.push(...(await tx.rows(overcommitted)));
          seen.passes += 1;
          return result;
        }),
    },
  });
}

test('no pass of many reconcilers overcommits while workers come, drain, vanish and finish', async () => {
  const lab = openLaboratory(clone, objects);
  const scans = [
    await lab.scan(named('wide', 't, u'), { inputs: { lines } }),
    await lab.scan(named('narrow', 'v', '\n    maxConcurrent: 4'), { inputs: { lines } }),
    await lab.scan(named('other', 't'), { inputs: { lines } }),
  ];
  for (const scan of scans) await lab.plan(scan);
  const seen = { passes: 0, faults: [] as unknown[] };
  const random = draws(20_261_130);
  const changeFleet = (statement: ReturnType<typeof query>) =>
    clone.database.transaction(async (tx) => {
      await tx.rows(query`select served from sonar.placement for update`);
      await tx.execute(statement);
    });
  const tagSets = [['t'], ['t', 'u'], ['u', 'v'], ['v']];
  for (const [n, tags] of tagSets.entries()) await lab.worker({ name: `w${n}`, tags, slots: 1 + n });
  let changing = true;
  const change = async () => {
    for (let n = 0; n < 500 && seen.passes < 40; n += 1) {
      const name = `w${Math.floor(random() * tagSets.length)}`;
      const kind = Math.floor(random() * 6);
      if (kind === 0)
        await changeFleet(query`
        update sonar.worker_incarnation set draining = not draining where worker_name = ${name} and replaced_at is null`);
      else if (kind === 1)
        await changeFleet(query`
        update sonar.worker_incarnation set slots = ${1 + Math.floor(random() * 5)} where worker_name = ${name} and replaced_at is null`);
      else if (kind === 2)
        await changeFleet(query`
        update sonar.worker_incarnation
        set pulsed_at = clock_timestamp() - case when random() < 0.5 then interval '1 hour' else interval '0' end
        where worker_name = ${name} and replaced_at is null`);
      else
        await clone.database.execute(query`
        update sonar.attempt set ended_at = clock_timestamp(), end_reason = 'recovered'
        where attempt_id in (select attempt_id from sonar.attempt where ended_at is null order by attempt_id limit 8)`);
    }
    changing = false;
  };
  const place = async () => {
    const placer = judged(lab, seen);
    while (changing) await placer.place();
  };
  await Promise.all([change(), ...Array.from({ length: 4 }, place)]);
  expect(seen.faults).toEqual([]);
  expect(seen.passes).toBeGreaterThanOrEqual(40);
  const [attempts] = await clone.database.rows<{ count: number }>(
    query`select count(*)::integer as count from sonar.attempt`,
  );
  expect(attempts!.count).toBeGreaterThan(50);
});

test('a command that is asked to end holds its room until it is known to have ended', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker({ slots: 1 });
  const [first, second] = [
    await lab.scan(named('first', 't'), { inputs: { lines: ['a', 'b'] } }),
    await lab.scan(named('second', 't'), { inputs: { lines: ['c', 'd'] } }),
  ];
  await lab.plan(first);
  await lab.plan(second);
  // The turn is the first scan's whole: it takes all the room there is.
  expect((await lab.place())?.placed).toMatchObject([{ scanId: first.scan_id, tasks: 2 }]);
  const attempts = await lab.published(first);
  for (const attempt of attempts) await lab.start(attempt, worker);
  await clone.database.execute(
    query`update sonar.scan set status = 'Cancelling' where scan_id = ${first.scan_id}`,
  );
  await lab.planOnce(first);
  expect((await lab.place())?.placed).toEqual([]);
  await worker.pulse({ attempts: [attempts[1]!.attempt_id] });
  expect((await lab.place())?.placed).toMatchObject([{ scanId: second.scan_id, tasks: 1 }]);
  await worker.pulse({ attempts: [] });
  expect((await lab.place())?.placed).toMatchObject([{ scanId: second.scan_id, tasks: 1 }]);
});

test('turns go on from pass to pass: where one slot at a time comes free, no scan waits for ever', async () => {
  const lab = openLaboratory(clone, objects, { SONAR_CAPACITY_MULTIPLE: 1 });
  await lab.worker({ slots: 1 });
  const scans: string[] = [];
  for (const name of ['first', 'second', 'third']) {
    const scan = await lab.scan(named(name, 't'), { inputs: { lines: lines.slice(0, 30) } });
    await lab.plan(scan);
    scans.push(scan.scan_id);
  }
  const given = [];
  for (let pass = 0; pass < 24; pass += 1) {
    given.push(...((await lab.place())?.placed.map(({ scanId }) => scans.indexOf(scanId)) ?? []));
    await clone.database.execute(
      query`update sonar.attempt set ended_at = clock_timestamp(), end_reason = 'recovered' where ended_at is null`,
    );
  }
  expect(given).toEqual([0, 1, 2].flatMap((scan) => Array.from({ length: 8 }, () => scan)));
});
