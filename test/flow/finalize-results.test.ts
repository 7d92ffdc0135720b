// Accepted results reach the inventory once, whoever dies on the way, and no result holds up another.

import type { Settings } from '#sonar/platform/config.ts';
import { newId } from '#sonar/platform/ids.ts';
import { finalizationIsDue } from '#sonar/stores/finalizations.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import { overwriteObject, removeObject, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const manyResults = oneStep.replace(
  'steps:\n  only:\n    tags: [t]',
  'inputs: {lines: {type: lines, default: ""}}\nsteps:\n  only:\n    tags: [t]\n    foreach: {in: inputs.lines}',
);
const page = (name: string, title = name) => JSON.stringify({ url: `http://${name}.example.com/`, title });

/** Accepted and unread results, one for each file given, in order. */
async function withResults(files: string[], settings: Partial<Settings> = {}) {
  const lab = openLaboratory(clone, objects, settings);
  const worker = await lab.worker();
  const scan = await lab.scan(manyResults, { inputs: { lines: files.map((_, index) => `l${index}`) } });
  await lab.plan(scan);
  await lab.place();
  const attempts = await lab.published(scan);
  for (const [index, attempt] of attempts.entries())
    await lab.run(attempt, worker, { found: { 'found.jsonl': files[index] ?? '' } });
  return { lab, scan, attempts, worker };
}

interface Row {
  status: string;
  attempts: number;
  records: number;
  bad_records: number;
  error: string | null;
  warnings: string[];
  claim_token: string | null;
}
const rows = () =>
  clone.database.rows<Row>(query`
    select f.status, f.attempts, f.records, f.bad_records, f.error, f.warnings, f.claim_token
    from sonar.finalization f join sonar.task t using (task_id) order by t.item_ordinal`);
const inventory = () =>
  clone.database.rows<{ key: string; state: string }>(
    query`select key, state::text as state from sonar.inventory order by key`,
  );
const keys = async () => (await inventory()).map((row) => row.key);
const observations = async () => {
  const [row] = await clone.database.rows<{ count: number }>(
    query`select count(*)::integer as count from sonar.observation`,
  );
  return row?.count;
};
const expireClaims = () =>
  clone.database.execute(query`
    update sonar.finalization set claim_expires_at = clock_timestamp() - interval '1 second' where claim_token is not null`);
const makeDue = () =>
  clone.database.execute(query`
    update sonar.finalization set available_at = clock_timestamp() - interval '1 second' where status = 'due'`);

/** The same laboratory, in which something happens before a file is read. */
const meanwhile = (lab: Laboratory, event: () => Promise<unknown>): Laboratory =>
  lab.with({
    objects: {
      ...objects,
      async read(key) {
        await event();
        return objects.read(key);
      },
    },
  });

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
      error: expect.stringMatching(/^none of 2 records could be read; the first: found.jsonl/),
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
  ['is not what was accepted', (key: string) => overwriteObject(key, page('evil')), /that were accepted$/],
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

test('a claim that is lost before the commit commits nothing', async () => {
  const { lab, scan } = await withResults([page('a')]);
  await meanwhile(lab, expireClaims).finalize();
  expect(await observations()).toBe(0);
  expect(await lab.tasks(scan)).toMatchObject([{ finalized: false }]);
  await makeDue();
  await lab.finalize();
  expect(await keys()).toEqual(['http://a.example.com/']);
  expect(await rows()).toMatchObject([{ status: 'done', attempts: 2 }]);
});

test('what another one took over and finished is not done twice by who had it before', async () => {
  const { lab } = await withResults([page('a'), page('b')]);
  const other = lab.with({ executorId: newId() });
  let taken = false;
  await meanwhile(lab, async () => {
    if (taken) return;
    taken = true;
    await expireClaims();
    await other.finalize();
  }).finalize();
  expect(await rows()).toMatchObject([
    { status: 'done', attempts: 2, records: 1 },
    { status: 'done', attempts: 2, records: 1 },
  ]);
  expect(await observations()).toBe(2);
});

test('a claim that is held keeps its rows from everybody; when its holder dies they are due again', async () => {
  const { lab } = await withResults([page('a')]);
  const dying = lab.with({
    database: faultyDatabase(
      clone.database,
      (name) => name === 'definition.revision' || name === 'finalization.postpone',
    ),
  });
  await expect(dying.finalize()).rejects.toThrow('injected fault');
  expect(await lab.finalize()).toBeUndefined();
  await expireClaims();
  await lab.finalize();
  expect(await rows()).toMatchObject([{ status: 'done', attempts: 2 }]);
});

test('claims are capped over all finalizers', async () => {
  const { lab } = await withResults(
    ['a', 'b', 'c', 'd', 'e'].map((name) => page(name)),
    {
      SONAR_FINALIZATION_CLAIMS: 2,
      SONAR_FINALIZATION_ROWS: 1,
    },
  );
  const gate = Promise.withResolvers<void>();
  let reading = 0;
  const both = Promise.withResolvers<void>();
  const finalizers = Array.from({ length: 5 }, () =>
    meanwhile(lab.with({ database: clone.open(2), executorId: newId() }), () => {
      reading += 1;
      if (reading === 2) both.resolve();
      return gate.promise;
    }).finalize(),
  );
  const refused = Promise.all(
    finalizers.map((finalizer) => Promise.race([finalizer, gate.promise.then(() => 'held')])),
  );
  await both.promise;
  expect(await lab.finalize()).toBeUndefined();
  expect((await rows()).filter((row) => row.claim_token !== null)).toHaveLength(2);
  gate.resolve();
  await refused;
  expect((await Promise.all(finalizers)).filter((scans) => scans !== undefined)).toHaveLength(2);
  expect((await rows()).filter((row) => row.status === 'done')).toHaveLength(2);
});

test('a claim is bounded in bytes, and a result over the bound is claimed alone', async () => {
  const large = Array.from({ length: 20 }, (_, index) => page(`large-${index}`)).join('\n');
  const { lab } = await withResults([page('a'), page('b'), large, page('c')], {
    SONAR_FINALIZATION_BYTES: 100,
  });
  const sizes: number[] = [];
  for (let done = 0; done < 4; ) {
    await lab.finalize();
    const now = (await rows()).filter((row) => row.status === 'done').length;
    sizes.push(now - done);
    done = now;
  }
  expect(sizes).toEqual([2, 1, 1]);
});

test('a large file goes in by batches; after a crash between them the rest is added and nothing twice', async () => {
  const lines = Array.from({ length: 4_500 }, (_, index) => page(`host-${index}`)).join('\n');
  const { lab, scan } = await withResults([lines]);
  const crashing = faultyDatabase(
    clone.database,
    (name, time) => (name === 'inventory.write' && time === 2) || name === 'finalization.postpone',
  );
  await expect(lab.with({ database: crashing }).finalize()).rejects.toThrow('injected fault');
  expect(await observations()).toBe(2_000);
  expect(await lab.tasks(scan)).toMatchObject([{ finalized: false }]);
  await expireClaims();
  await lab.finalize();
  expect(await observations()).toBe(4_500);
  expect(await keys()).toHaveLength(4_500);
  expect(await rows()).toMatchObject([{ status: 'done', records: 4_500 }]);
});

test('a batch of a large file whose claim was lost commits nothing', async () => {
  const lines = Array.from({ length: 2_500 }, (_, index) => page(`host-${index}`)).join('\n');
  const { lab } = await withResults([lines]);
  await meanwhile(lab, expireClaims).finalize();
  expect(await observations()).toBe(0);
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
