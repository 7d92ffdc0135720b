// A claim is proved in the transaction of its effects: who has lost it commits nothing, whoever dies on the way.
import type { ClaimToken } from '#sonar/contracts/ids.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { newId } from '#sonar/platform/ids.ts';
import { claimFinalizations } from '#sonar/stores/finalizations.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { page, unreadResults } from '../fixtures/unread-results.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const { withResults, dispatched, rows, keys, observations, expireClaims, makeDue, meanwhile } = unreadResults(
  clone,
  objects,
);

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
    // What was claimed before is claimed one at a time.
    await other.finalize();
    await other.finalize();
  }).finalize();
  expect(await rows()).toMatchObject([
    { status: 'done', attempts: 2, records: 1 },
    { status: 'done', attempts: 2, records: 1 },
  ]);
  expect(await observations()).toBe(2);
});

test('an older claim of the same executor proves nothing', async () => {
  const { lab } = await withResults([page('a')]);
  const token = newId<ClaimToken>();
  await meanwhile(lab, async () => {
    await expireClaims();
    const claim = { token, executorId: lab.executorId, leaseMs: 60_000, maxRows: 1, maxBytes: 1_000 };
    await claimFinalizations(clone.database, claim);
  }).finalize();
  expect(await observations()).toBe(0);
  expect(await rows()).toMatchObject([{ status: 'due', claim_token: token, error: null }]);
});

test('a claim that is held keeps its rows from everybody; when its holder dies they are due again', async () => {
  const { lab } = await withResults([page('a')]);
  const dying = lab.with({
    database: faultyDatabase(
      clone.database,
      (name) => name === 'attempt.output_files' || name === 'finalization.postpone',
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
  const judged = Promise.withResolvers<void>();
  let reading = 0;
  let refused = 0;
  const judge = () => {
    if (reading + refused === 5) judged.resolve();
  };
  const finalizers = Array.from({ length: 5 }, async () => {
    const own = lab.with({ database: clone.open(2), executorId: newId() });
    const scans = await meanwhile(own, () => {
      reading += 1;
      judge();
      return gate.promise;
    }).finalize();
    if (scans !== undefined) return;
    refused += 1;
    judge();
  });
  await judged.promise;
  expect({ reading, refused }).toEqual({ reading: 2, refused: 3 });
  expect(await lab.finalize()).toBeUndefined();
  gate.resolve();
  await Promise.all(finalizers);
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
    (name, time) => (name === 'source_record.insert' && time === 2) || name === 'finalization.postpone',
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

test('a batch of a large file whose result was closed meanwhile commits nothing, though its neighbour is due', async () => {
  const { lab, scan, attempts, worker } = await dispatched(2);
  const lines = Array.from({ length: 2_500 }, (_, index) => page(`host-${index}`)).join('\n');
  const failed = { outcome: 'failed', exitCode: 3 } as const;
  await lab.run(attempts[0]!, worker, { found: { 'found.jsonl': lines } }, failed);
  await lab.run(attempts[1]!, worker, { found: { 'found.jsonl': page('neighbour') } });
  let retried: Promise<unknown> | undefined;
  await meanwhile(lab, () => (retried ??= retryTasks(lab, scan.scan_id, null))).finalize();
  expect(await keys()).toEqual(['http://neighbour.example.com/']);
  expect((await rows()).map((row) => row.status)).toEqual(['superseded', 'done']);
});
