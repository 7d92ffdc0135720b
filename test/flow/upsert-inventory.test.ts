// The inventory is a fold of its observations: any order, any repetition and any number of writers leave the same bytes.
import fc from 'fast-check';
import type { AttemptId, ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { orderKeyOf } from '#sonar/domain/inventory-fold.ts';
import { upsertInventory } from '#sonar/flow/upsert-inventory.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { NewObservation } from '#sonar/stores/inventory.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const attemptId = newId<AttemptId>(0);
const scanId = newId<ScanId>(0);

const bytes = async () => [
  ...(await clone.database.rows(
    query`select type, key, state::text as state, first_seen_at, last_seen_at from sonar.inventory order by 1, 2`,
  )),
  ...(await clone.database.rows(query`
    select source_id, type, key, state::text as state, first_seen_at, last_seen_at, steps from sonar.source_record
    order by 1, 2, 3`)),
  ...(await clone.database.rows(
    query`select source_id, type, records from sonar.source_count order by 1, 2`,
  )),
];
const apply = (database: Database, observations: readonly NewObservation[]) =>
  database.transaction((tx) => upsertInventory(tx, observations));

function observation(row: number, host: number, more: Partial<NewObservation> = {}): NewObservation {
  return {
    attemptId,
    output: 'found',
    file: 'found.jsonl',
    row,
    part: 0,
    workspaceId: 'default',
    scanId,
    step: 'only',
    type: 'endpoint',
    key: `http://host-${host}/`,
    orderKey: orderKeyOf(row, attemptId, 'found', 0, row, 0),
    observedAt: new Date(1_700_000_000_000 + ((row * 7919) % 1_000) * 1_000).toISOString(),
    fields: { title: `title ${row}`, status: row },
    sets: { tags: [`tag-${row % 3}`] },
    partial: false,
    ...more,
  };
}

/** Some observations, an order of them with repetitions, and how they are cut into batches. */
const arrivals = fc
  .array(
    fc.record({
      host: fc.integer({ min: 0, max: 3 }),
      // One of Sonar's own types and a declared one; two scans and an import.
      type: fc.constantFrom('endpoint', 'login'),
      scanId: fc.constantFrom(scanId, newId<ScanId>(1), null),
      step: fc.constantFrom('one', 'two', null),
      fields: fc.dictionary(
        fc.constantFrom('title', 'status', 'server'),
        fc.oneof(fc.integer(), fc.string({ unit: 'grapheme-ascii' }), fc.constant(null)),
      ),
      sets: fc.dictionary(
        fc.constantFrom('tags', 'names'),
        fc.array(fc.constantFrom('a', 'b', 'c', 'é', '\u{1F600}'), { maxLength: 3 }),
      ),
      partial: fc.boolean(),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((list) => list.map(({ host, ...rest }, row) => observation(row, host, rest)))
  .chain((observations) =>
    fc.record({
      observations: fc.constant(observations),
      order: fc.shuffledSubarray([...observations, ...observations], { minLength: observations.length * 2 }),
      cuts: fc.integer({ min: 1, max: 5 }),
    }),
  );

function batchesOf<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

test('any order, repetition and cut into batches leaves the same bytes', async () => {
  await fc.assert(
    fc.asyncProperty(arrivals, async ({ observations, order, cuts }) => {
      await clone.empty();
      await apply(clone.database, observations);
      const expected = await bytes();
      await clone.empty();
      for (const batch of batchesOf(order, cuts)) await apply(clone.database, batch);
      expect(await bytes()).toEqual(expected);
    }),
    { seed: 20_261, numRuns: 25 },
  );
});

test('only what is new is counted as new', async () => {
  const observations = [observation(0, 0), observation(1, 0), observation(2, 1)];
  expect(await apply(clone.database, observations)).toBe(3);
  expect(await apply(clone.database, observations)).toBe(0);
  expect(await apply(clone.database, [observation(2, 1), observation(3, 1)])).toBe(1);
  expect(await apply(clone.database, [])).toBe(0);
});

test('writers at once on the same records, each with its batches in another order, end without deadlock in the same bytes', async () => {
  const all = Array.from({ length: 480 }, (_, row) => observation(row, row % 40));
  for (const batch of batchesOf(all, 60)) await apply(clone.database, batch);
  const expected = await bytes();
  await clone.empty();
  const shuffled = fc.sample(fc.shuffledSubarray(all, { minLength: all.length }), { seed: 7, numRuns: 6 });
  const writers = shuffled.map((own) => ({ own, database: clone.open(1) }));
  await Promise.all(
    writers.map(async ({ own, database }) => {
      for (const batch of batchesOf(own, 60)) await apply(database, batch);
    }),
  );
  expect(await bytes()).toEqual(expected);
  const [row] = await clone.database.rows(query`select count(*)::integer as count from sonar.observation`);
  expect(row).toEqual({ count: 480 });
});

test('writers at once, each with its own observations of the same records, lose none of them', async () => {
  const own = Array.from({ length: 6 }, (_, writer) => {
    const attempt = newId<AttemptId>(writer);
    return Array.from({ length: 200 }, (_unused, row) =>
      observation(row, row % 50, {
        attemptId: attempt,
        orderKey: orderKeyOf(row, attempt, 'found', 0, row, 0),
        fields: { [`by-${writer}`]: row },
        sets: { writers: [`w-${writer}`] },
      }),
    );
  });
  for (const observations of own) await apply(clone.database, observations);
  const expected = await bytes();
  expect(expected).toHaveLength(101);
  await clone.empty();
  const shuffled = own.map((list, writer) => {
    const [order] = fc.sample(fc.shuffledSubarray(list, { minLength: list.length }), {
      seed: writer,
      numRuns: 1,
    });
    return { batches: batchesOf(order ?? [], 25), database: clone.open(1) };
  });
  await Promise.all(
    shuffled.map(async ({ batches, database }) => {
      for (const batch of batches) await apply(database, batch);
    }),
  );
  expect(await bytes()).toEqual(expected);
});

test('a batch that is rolled back leaves no record without a state', async () => {
  const failing = clone.database.transaction(async (tx) => {
    await upsertInventory(tx, [observation(0, 0)]);
    throw new Error('rolled back');
  });
  await expect(failing).rejects.toThrow('rolled back');
  expect(await bytes()).toEqual([]);
});
