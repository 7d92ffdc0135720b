// A scan is taken out of the inventory as if it had never been: what others saw stays, byte for byte.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { AttemptId, ScanId } from '#sonar/contracts/ids.ts';
import { orderKeyOf } from '#sonar/domain/inventory-fold.ts';
import { forgetScan } from '#sonar/flow/refold-inventory.ts';
import { upsertInventory } from '#sonar/flow/upsert-inventory.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { NewObservation } from '#sonar/stores/inventory.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { untilBlocked } from '../fixtures/lock-waits.ts';
import { query } from '../fixtures/query.ts';
import { watchedDatabase } from '../fixtures/watched-database.ts';

const clone = useClonedDatabase();
const scans = [newId<ScanId>(1), newId<ScanId>(2), newId<ScanId>(3)] as const;
const attempts = scans.map((_, index) => newId<AttemptId>(index + 10));

const dump = async () => ({
  inventory: await clone.database.rows(
    query`select type, key, state::text as state, first_seen_at, last_seen_at from sonar.inventory order by 1, 2`,
  ),
  sources: await clone.database.rows(
    query`select source_id, type, key, state::text as state, steps from sonar.source_record order by 1, 2, 3`,
  ),
  counts: await clone.database.rows(query`select * from sonar.source_count where records <> 0 order by 1, 3`),
  observations: await clone.database.rows(
    query`select attempt_id, row, key from sonar.observation order by 1, 2`,
  ),
});
const apply = (observations: readonly NewObservation[], database = clone.database) =>
  database.transaction((tx) => upsertInventory(tx, observations));

function observation(
  scan: number,
  row: number,
  host: number,
  more: Partial<NewObservation> = {},
): NewObservation {
  const attemptId = attempts[scan] as AttemptId;
  return {
    attemptId,
    output: 'found',
    file: 'found.jsonl',
    row,
    part: 0,
    workspaceId: 'default',
    scanId: scans[scan] as ScanId,
    step: 'only',
    type: host % 2 === 0 ? 'endpoint' : 'domain',
    key: `host-${host}`,
    orderKey: orderKeyOf(row * 3 + scan, attemptId, 'found', 0, row, 0),
    observedAt: new Date(1_700_000_000_000 + ((row * 7919 + scan) % 1_000) * 1_000).toISOString(),
    fields: { title: `title ${scan} ${row}` },
    sets: { tags: [`tag-${scan}`] },
    partial: scan === 0,
    ...more,
  };
}

async function forget(scan: number): Promise<number> {
  for (let batches = 1; ; batches++)
    if ((await forgetScan(clone.database, scans[scan] as ScanId)).done) return batches;
}

test('what is left after a scan was taken out is what there would be without it', async () => {
  const arrivals = fc.array(
    fc.record({
      scan: fc.integer({ min: 0, max: 2 }),
      host: fc.integer({ min: 0, max: 4 }),
      row: fc.nat(50),
    }),
    { minLength: 1, maxLength: 20 },
  );
  await fc.assert(
    fc.asyncProperty(arrivals, async (list) => {
      const all = list.map(({ scan, host, row }) => observation(scan, row, host));
      await clone.empty();
      await apply(all.filter(({ scanId }) => scanId !== scans[0]));
      const expected = await dump();
      await clone.empty();
      await apply(all);
      await forget(0);
      expect(await dump()).toEqual(expected);
    }),
    { seed: 20_262, numRuns: 25 },
  );
});

test('a scan of many records goes in bounded batches, and a caller that was killed goes on', async () => {
  await apply(Array.from({ length: 1_200 }, (_, row) => observation(0, row, row)));
  await apply([observation(1, 0, 0)]);
  const kept = (await dump()).sources.filter((row) => (row as { source_id: string }).source_id === scans[1]);
  expect(await forgetScan(clone.database, scans[0])).toEqual({ records: 500, observations: 0, done: false });
  expect(await forget(0)).toBe(4);
  const after = await dump();
  expect(after.sources).toEqual(kept);
  expect(after.inventory).toHaveLength(1);
  expect(after.observations).toHaveLength(1);
  expect(await forget(0)).toBe(1);
});

test('a writer that waits for a record which goes makes it anew', async () => {
  await apply([observation(0, 0, 0)]);
  const writer = clone.open(1);
  const late = observation(1, 7, 0);
  let writing: Promise<number> | undefined;
  await clone.database.transaction(async (tx) => {
    await tx.rows(query`select 1 as one from sonar.inventory where key = 'host-0' for update`);
    writing = apply([late], writer);
    writing.catch(() => undefined);
    await untilBlocked(clone.open(1), 1);
    await tx.execute(query`delete from sonar.source_record where source_id = ${scans[0]}`);
    await tx.execute(query`delete from sonar.inventory where key = 'host-0'`);
  });
  expect(await writing).toBe(1);
  await forget(0);
  const after = await dump();
  await clone.empty();
  await apply([late]);
  expect(after).toEqual(await dump());
});

test('writers beside the removal of a scan lose nothing', async () => {
  const others = Array.from({ length: 400 }, (_, row) => observation(1 + (row % 2), row, row % 60));
  await apply(others);
  const expected = await dump();
  await clone.empty();
  await apply(Array.from({ length: 600 }, (_, row) => observation(0, row, row % 60)));
  const writers = [0, 1, 2].map((writer) => ({
    database: clone.open(1),
    batches: Array.from({ length: 8 }, (_, batch) =>
      others.filter((_row, index) => index % 24 === writer * 8 + batch),
    ),
  }));
  await Promise.all([
    forget(0),
    ...writers.map(async ({ database, batches }) => {
      for (const batch of batches) await apply(batch, database);
    }),
  ]);
  expect(await dump()).toEqual(expected);
});

/**
 * Two processes take the first scan out; the first gets at its only record before the second, which read the same keys
 * and waits. `happens` says what the second meets before its statements.
 */
async function takenOutTwice(happens: Record<string, () => Promise<unknown>>): Promise<void> {
  const deletes = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const first = forgetScan(
    watchedDatabase(clone.open(1), ({ name }) => {
      if (name !== 'inventory.delete') return undefined;
      deletes.resolve();
      return goOn.promise;
    }),
    scans[0],
  );
  await deletes.promise;
  const second = forgetScan(
    watchedDatabase(clone.open(1), ({ name }) => happens[name]?.()),
    scans[0],
  );
  await untilBlocked(clone.open(1), 1);
  goOn.resolve();
  await Promise.all([first, second]);
}
const once = (work: () => Promise<unknown>) => {
  let done: Promise<unknown> | undefined;
  return () => (done ??= work());
};

test('of two processes that take one scan out, none removes a record that another scan makes meanwhile', async () => {
  const others = [observation(1, 1, 1)];
  await apply(others);
  const expected = await dump();
  await clone.empty();
  await apply([observation(0, 0, 1)]);
  const write = once(() => apply(others));
  await takenOutTwice({ 'inventory.delete': write });
  await write();
  await forget(0);
  expect(await dump()).toEqual(expected);
});

test('of two processes that take one scan out, none undoes what another scan adds meanwhile', async () => {
  const others = [observation(1, 1, 1), observation(1, 2, 1)] as const;
  await apply(others);
  const expected = await dump();
  await clone.empty();
  await apply([observation(0, 0, 1)]);
  const add = once(() => apply(others.slice(1)));
  await takenOutTwice({
    'source_record.delete': once(() => apply(others.slice(0, 1))),
    'inventory.write': add,
  });
  await add();
  await forget(0);
  expect(await dump()).toEqual(expected);
});

test('the migration gives scans of before what they would have had', async () => {
  const all = Array.from({ length: 60 }, (_, row) =>
    observation(row % 3, row, row % 7, {
      sets: { tags: Array.from({ length: 40 }, (_unused, n) => `t${(n * 37 + row * 11) % 90}`) },
      fields: { title: `t ${row}`, [`only-${row % 5}`]: { row } },
    }),
  );
  await apply(all);
  const expected = await dump();
  await clone.database.script(
    `begin; set local session_replication_role = replica; delete from sonar.source_record; delete from sonar.source_count; ${attempts
      .map(
        (id, scan) =>
          `insert into sonar.attempt (attempt_id, workspace_id, scan_id, task_id, step, tag, number, key_id, definition_revision)
           values ('${id}', 'default', '${scans[scan]}', '${id}', 'only', 't', 1, 'k', 1);`,
      )
      .join('')} commit;`,
  );
  const text = readFileSync(join(__dirname, '../../migrations/0010_inventory_sources.sql'), 'utf8');
  const from = text.indexOf('with stated as');
  const backfill = text.slice(from, text.indexOf('left join sets s using (scan_id, type, key);'));
  await clone.database.script(`${backfill} left join sets s using (scan_id, type, key)`);
  expect(await dump()).toEqual(expected);
});
