// Lists of records: what a filter finds, that pages put together are the whole, and that no page reads all there is.
import fc from 'fast-check';
import type { AttemptId, ScanId, SourceId } from '#sonar/contracts/ids.ts';
import { orderKeyOf } from '#sonar/domain/inventory-fold.ts';
import { listInventory } from '#sonar/flow/list-inventory.ts';
import { upsertInventory } from '#sonar/flow/upsert-inventory.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { NewObservation } from '#sonar/stores/inventory.ts';
import type { RecordFilter } from '#sonar/stores/inventory-lists.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { query } from '../fixtures/query.ts';
import { sourceStatements } from '../fixtures/statement-texts.ts';

const clone = useClonedDatabase();
const scans = [newId<ScanId>(1), newId<ScanId>(2)] as const;
const none: RecordFilter = {
  type: null,
  definition: null,
  contains: null,
  fields: [],
  seenSince: null,
  seenBefore: null,
  newSince: null,
  partial: null,
};
const start = { type: '', key: '' };

function observation(row: number, more: Partial<NewObservation> = {}): NewObservation {
  const attemptId = newId<AttemptId>(5);
  return {
    attemptId,
    output: 'found',
    file: 'f',
    row,
    part: 0,
    workspaceId: 'default',
    scanId: scans[0],
    step: 'only',
    type: 'domain',
    key: `host-${String(row).padStart(5, '0')}.example.com`,
    orderKey: orderKeyOf(row, attemptId, 'found', 0, row, 0),
    observedAt: `2026-01-0${1 + (row % 9)}T00:00:00.000Z`,
    fields: { n: row, even: row % 2 === 0 },
    sets: { tags: [`t${row % 3}`] },
    partial: row % 4 === 0,
    ...more,
  };
}
const store = (observations: readonly NewObservation[]) =>
  clone.database.transaction((tx) => upsertInventory(tx, observations));

async function all(filter: Partial<RecordFilter>, sourceId: SourceId | null = null, limit = 1_000) {
  const keys: string[] = [];
  const pages: number[] = [];
  let after: typeof start | null = start;
  while (after !== null) {
    const page: Awaited<ReturnType<typeof listInventory>> = await listInventory(
      clone.database,
      { workspaceId: 'default', sourceId },
      { ...none, ...filter },
      after,
      limit,
    );
    keys.push(...page.rows.map((row) => `${row.type} ${row.key}`));
    pages.push(page.rows.length);
    after = page.next;
  }
  return { keys, pages };
}

test.each<[string, Partial<RecordFilter>, (row: number) => boolean]>([
  ['a type', { type: 'domain' }, () => true],
  ['a type without records', { type: 'dns' }, () => false],
  ['a text in the key, in any case', { contains: 'HOST-00012.' }, (row) => row === 12],
  ['a number as text', { fields: [['n', '7']] }, (row) => row === 7],
  ['a flag', { fields: [['even', 'true']] }, (row) => row % 2 === 0],
  ['a value of a set', { fields: [['tags', 't1']] }, (row) => row % 3 === 1],
  [
    'two fields',
    {
      fields: [
        ['even', 'true'],
        ['tags', 't1'],
      ],
    },
    (row) => row % 2 === 0 && row % 3 === 1,
  ],
  ['a field that nobody has', { fields: [['x', '']] }, () => false],
  ['seen since', { seenSince: '2026-01-08T00:00:00.000Z' }, (row) => row % 9 >= 7],
  ['not seen since', { seenBefore: '2026-01-03T00:00:00.000Z' }, (row) => row % 9 < 2],
  ['new since', { newSince: '2026-01-09T00:00:00.000Z' }, (row) => row % 9 === 8],
  ['only partial', { partial: true }, (row) => row % 4 === 0],
  ['without partial', { partial: false }, (row) => row % 4 !== 0],
  ['a wildcard is a text like others', { contains: '%' }, () => false],
])('%s', async (_what, filter, wanted) => {
  const rows = Array.from({ length: 40 }, (_, row) => row);
  await store(rows.map((row) => observation(row)));
  const { keys } = await all(filter);
  expect(keys).toEqual(rows.filter(wanted).map((row) => `domain ${observation(row).key}`));
  expect((await all(filter, scans[0])).keys).toEqual(keys);
  expect((await all(filter, scans[1])).keys).toEqual([]);
});

test('of one scan everything of a record is as that scan saw it', async () => {
  await store([
    observation(1, { fields: { title: 'first' } }),
    observation(2, { key: observation(1).key, scanId: scans[1], fields: { title: 'second' } }),
  ]);
  const titles = async (sourceId: SourceId | null) =>
    (await listInventory(clone.database, { workspaceId: 'default', sourceId }, none, start, 10)).rows.map(
      (row) => [row.state.fields.title?.value, row.first_seen_at],
    );
  expect(await titles(null)).toEqual([['second', '2026-01-02T00:00:00.000Z']]);
  expect(await titles(scans[0])).toEqual([['first', '2026-01-02T00:00:00.000Z']]);
  expect(await titles(scans[1])).toEqual([['second', '2026-01-03T00:00:00.000Z']]);
});

test('what is partial for one scan and whole for another is whole in the inventory', async () => {
  await store([observation(0), observation(1, { key: observation(0).key, scanId: scans[1] })]);
  expect((await all({ partial: true })).keys).toEqual([]);
  expect((await all({ partial: true }, scans[0])).keys).toHaveLength(1);
});

test('pages put together are the whole, whatever the keys', async () => {
  const key = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 6 })
    .filter((text) => !text.includes('\0'));
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(key, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 7 }),
      async (keys, limit) => {
        await clone.empty();
        await store(
          keys.map((one, row) => observation(row, { key: one, type: row % 3 === 0 ? 'dns' : 'domain' })),
        );
        const whole = await all({});
        expect(whole.keys).toHaveLength(keys.length);
        expect((await all({}, null, limit)).keys).toEqual(whole.keys);
        expect((await all({ partial: false }, scans[0], limit)).keys).toEqual(
          (await all({ partial: false })).keys,
        );
      },
    ),
    { seed: 20_266, numRuns: 15 },
  );
});

test('a page ends after a bounded number of records that do not match, and the next goes on', async () => {
  await clone.database.execute(query`
    insert into sonar.inventory (workspace_id, type, key, state, first_seen_at, last_seen_at)
    select 'default', 'domain', 'k' || lpad(n::text, 6, '0'),
           '{"fields": {}, "sets": {}, "partial": false, "firstSeenAt": "x", "lastSeenAt": "x"}', now(), now()
    from generate_series(1, 30000) as n`);
  const { keys, pages } = await all({ contains: 'k030000' });
  expect(keys).toEqual(['domain k030000']);
  expect(pages).toEqual([0, 1]);
});

interface PlanNode {
  'Node Type': string;
  'Index Cond'?: string;
  Plans?: PlanNode[];
}
const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];
const bare = (text: string) => ({ name: '', text, values: [] });

// A page that is asked for by type, or of one scan, begins at its place and ends when it has enough.
test.each([
  ['inventory.examine', 'workspace_id = '],
  ['source_record.examine', 'source_id = '],
  ['source_record.page', 'source_id = '],
])('%s reads a range of an index, not the table', async (name, by) => {
  await store(Array.from({ length: 2_000 }, (_, row) => observation(row)));
  await clone.database.script('analyze');
  const text = sourceStatements().find((statement) => statement.name === name)?.text ?? '';
  const count = new Set(text.match(/\$\d+/g)).size;
  const nodes = await clone.database.transaction(async (tx) => {
    await tx.execute(bare('set local plan_cache_mode = force_generic_plan'));
    await tx.execute(bare(`prepare planned as ${text}`));
    const [row] = await tx.rows<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      bare(
        `explain (format json) execute planned(${Array.from({ length: count }, () => 'null').join(', ')})`,
      ),
    );
    await tx.execute(bare('deallocate planned'));
    return nodesOf(row!['QUERY PLAN'][0].Plan);
  });
  const scan = nodes.find((node) => node['Index Cond']?.includes(by));
  expect(scan?.['Node Type']).toBe('Index Scan');
  expect(scan?.['Index Cond']).toMatch(/ROW\(type, key\) > .*ROW\(type, key\) < /);
  // Below the limit nothing is sorted: that would read the range to its end.
  expect(
    nodesOf(nodes.find((node) => node['Node Type'] === 'Limit')!).map((node) => node['Node Type']),
  ).toEqual(['Limit', 'Index Scan']);
});
