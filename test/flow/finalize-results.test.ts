// Accepted results reach the inventory once, and no result holds up another.
import { finalizationIsDue } from '#sonar/stores/finalizations.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { overwriteObject, removeObject, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { page, unreadResults } from '../fixtures/unread-results.ts';
import { watchedDatabase } from '../fixtures/watched-database.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const { withResults, rows, inventory, keys, observations, makeDue } = unreadResults(clone, objects);

test('what was accepted becomes observations, records and counts, and the task may be planned upon', async () => {
  const { lab, scan } = await withResults([[page('a'), page('b')].join('\n')]);
  expect(await lab.finalize()).toEqual(new Set([scan.scan_id]));
  expect(await keys()).toEqual(['http://a.example.com/', 'http://b.example.com/']);
  expect(await rows()).toMatchObject([
    { status: 'done', attempts: 1, records: 2, bad_records: 0, error: null, claim_token: null },
  ]);
  expect(await lab.tasks(scan)).toMatchObject([{ finalized: true, plan_due: true }]);
  expect(await lab.finalize()).toBeUndefined();
});

test('a replay leaves the same bytes', async () => {
  const { lab } = await withResults([
    [page('a'), page('a', 'again'), page('b')].join('\n'),
    page('a', 'later'),
  ]);
  await lab.finalize();
  const before = await inventory();
  expect(await observations()).toBe(4);
  await clone.database.execute(query`update sonar.finalization set status = 'due', finished_at = null`);
  await clone.database.execute(query`update sonar.task set plan_due = false`);
  await clone.database.execute(query`update sonar.task set finalized = false`);
  await lab.finalize();
  await lab.finalize();
  expect((await rows()).map((row) => row.status)).toEqual(['done', 'done']);
  expect(await inventory()).toEqual(before);
  expect(await observations()).toBe(4);
});

test('bad records are counted and sampled, and their neighbours are kept', async () => {
  const { lab } = await withResults([
    ['no json', page('a'), '{"title":"no url"}', '[]', page('b'), '{"url":"javascript:alert(1)"}'].join('\n'),
  ]);
  await lab.finalize();
  expect(await keys()).toEqual(['http://a.example.com/', 'http://b.example.com/']);
  const [row] = await rows();
  expect(row).toMatchObject({ status: 'done', records: 2, bad_records: 4 });
  expect(row?.warnings).toHaveLength(4);
  expect(row?.warnings[0]).toBe('found.jsonl: the line is no JSON: no json');
});

test('a file that is not empty and has no good record fails loudly, and in the end the task with it', async () => {
  const { lab, scan } = await withResults(['nothing\nto see\n'], { SONAR_FINALIZATION_ATTEMPTS: 2 });
  await lab.finalize();
  expect(await rows()).toMatchObject([
    {
      status: 'due',
      attempts: 1,
      error: expect.stringMatching(/^none of 2 records of found.jsonl could be read; the first: found.jsonl/),
    },
  ]);
  expect(await lab.finalize()).toBeUndefined();
  await makeDue();
  await lab.finalize();
  expect(await rows()).toMatchObject([{ status: 'poisoned', attempts: 2, claim_token: null }]);
  expect(await lab.tasks(scan)).toMatchObject([
    { status: 'Failed', failure_code: 'finalization_poisoned', finalized: true, plan_due: false },
  ]);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('CompletedWithErrors');
});

test.each([
  ['is gone', removeObject, /^no object .* in the store$/],
  ['is not what was accepted', (key: string) => overwriteObject(key, page('x')), /that were accepted$/],
])(
  'a file that %s is tried again with backoff, then poisoned, while its neighbours in the batch are read at once',
  async (_what, spoil, error) => {
    const { lab, scan } = await withResults([page('a'), page('b'), page('c')], {
      SONAR_FINALIZATION_ATTEMPTS: 3,
    });
    const [file] = await clone.database.rows<{ object_key: string }>(query`
    select object_key from sonar.output_file join sonar.task using (task_id) where item_ordinal = 1`);
    await spoil(file!.object_key);
    await lab.finalize();
    expect((await rows()).map((row) => row.status)).toEqual(['done', 'due', 'done']);
    expect((await rows())[1]).toMatchObject({ error: expect.stringMatching(error), claim_token: null });
    expect(await keys()).toEqual(['http://a.example.com/', 'http://c.example.com/']);
    for (let time = 0; time < 2; time += 1) {
      await makeDue();
      await lab.finalize();
    }
    expect((await rows()).map((row) => row.status)).toEqual(['done', 'poisoned', 'done']);
    expect((await lab.tasks(scan)).map((task) => task.status)).toEqual(['Completed', 'Failed', 'Completed']);
    await lab.plan(scan);
    expect(await lab.settle(scan)).toBe('CompletedWithErrors');
    expect(await finalizationIsDue(clone.database)).toBe(false);
  },
);

test('a result whose effects PostgreSQL refuses is tried alone, and its neighbours commit', async () => {
  const { lab } = await withResults([page('a'), page('refused'), page('c')]);
  await clone.database.script(
    "alter table sonar.inventory add constraint refuse check (key not like '%refused%')",
  );
  try {
    await lab.finalize();
  } finally {
    await clone.database.script('alter table sonar.inventory drop constraint refuse');
  }
  expect((await rows()).map((row) => [row.status, row.records])).toEqual([
    ['done', 1],
    ['due', 0],
    ['done', 1],
  ]);
  expect(await keys()).toEqual(['http://a.example.com/', 'http://c.example.com/']);
  expect(await observations()).toBe(2);
});

test('what a failed command left is read and marked; the task stays Failed', async () => {
  const { lab, scan, attempts, worker } = await withResults([]);
  expect(attempts).toEqual([]);
  const failed = await lab.scan(oneStep);
  await lab.plan(failed);
  await lab.place();
  const [attempt] = await lab.published(failed);
  await lab.run(
    attempt!,
    worker,
    { found: { 'found.jsonl': page('a') } },
    { outcome: 'timed_out', exitCode: null },
  );
  await lab.finalize();
  expect(await lab.tasks(failed)).toMatchObject([
    { status: 'Failed', failure_code: 'command_timed_out', finalized: true, plan_due: false },
  ]);
  expect(await clone.database.rows(query`select state->'partial' as partial from sonar.inventory`)).toEqual([
    { partial: true },
  ]);
  expect(scan.status).toBe('Running');
});

const certificates = `
sonar: 1
name: certificates
steps:
  only: {tags: [t], command: [tlsx], outputs: {found: {path: "*.jsonl", read: tlsx}}}
`;
const wide = (file: string, lines: number) =>
  Array.from({ length: lines }, (_, line) =>
    JSON.stringify({
      host: `h${line}.example.com`,
      port: 443,
      fingerprint_hash: { sha256: `${file}${line}`.padStart(64, 'a') },
      subject_an: Array.from({ length: 256 }, (_unused, name) => `${'n'.repeat(240)}${name}.example.com`),
    }),
  ).join('\n');

test('what is written at once is bounded in all its bytes: sets and keys too, over files and results', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const results: Record<string, string>[] = [
    { 'a.jsonl': wide('1', 40), 'b.jsonl': wide('2', 40) },
    { 'a.jsonl': wide('3', 60) },
  ];
  for (const [index, found] of results.entries()) {
    const scan = await lab.scan(certificates.replace('certificates', `certificates-${index}`));
    await lab.plan(scan);
    await lab.place();
    const [attempt] = await lab.published(scan);
    await lab.run(attempt!, worker, { found });
  }
  const sizes: number[] = [];
  const measured = watchedDatabase(clone.database, async ({ name, values }) => {
    if (name === 'inventory.insert_observations') sizes.push(Buffer.byteLength(String(values[0])));
  });
  await lab.with({ database: measured }).finalize();
  expect((await rows()).map((row) => row.status)).toEqual(['done', 'done']);
  const line = Buffer.byteLength(wide('1', 1));
  // The line that goes over the bound is still among what is written.
  expect(Math.max(...sizes)).toBeLessThan(4 * 1024 * 1024 + 2 * line);
  expect(sizes.length).toBeGreaterThan(2);
});
