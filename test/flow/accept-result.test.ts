// A result is accepted once, with the work of reading it in the same transaction; whatever comes later changes nothing.
import type { Result } from '#sonar/contracts/worker-api.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { resultOf } from '../fixtures/laboratory.ts';
import { whileLocked } from '../fixtures/lock-waits.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const found = { found: { 'found.jsonl': '{"url":"http://a.example.com/","title":"A"}\n' } };
const failing = { outcome: 'failed', exitCode: 3 } as const;
const retrying = oneStep.replace(
  '    command',
  '    retry: {max: 2, backoff: 30s, maxBackoff: 45s}\n    command',
);

const counts = async () => {
  const [row] = await clone.database.rows<Record<string, number>>(query`
    select (select count(*)::integer from sonar.result) as results, (select count(*)::integer from sonar.finalization) as finalizations,
      (select count(*)::integer from sonar.output_file) as files`);
  return row;
};
const attemptEnds = () =>
  clone.database.rows<{ end_reason: string | null }>(
    query`select end_reason from sonar.attempt order by number, attempt_id`,
  );

test('a completed result ends the task, its attempt, and enqueues its reading', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await lab.start(attempt, worker);
  const result = await lab.result(attempt, worker, found);
  expect(await lab.accept(attempt, result)).toBe('accepted');
  expect(await lab.tasks(scan)).toMatchObject([
    {
      status: 'Completed',
      attempt_id: null,
      accepted_attempt_id: attempt.attempt_id,
      accepted_digest: result.digest,
      finalized: false,
      plan_due: false,
      exit_code: 0,
    },
  ]);
  expect(await counts()).toEqual({ results: 1, finalizations: 1, files: 1 });
  expect(await attemptEnds()).toEqual([{ end_reason: 'result' }]);
});

test('a result without anything to read is finalized as it is accepted', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  expect(await lab.run(attempt, worker)).toBe('accepted');
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Completed', finalized: true, plan_due: true }]);
  expect(await counts()).toMatchObject({ finalizations: 0 });
});

test('the same result again is a duplicate, another of the same attempt a conflict, and neither changes anything', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await lab.start(attempt, worker);
  const result = await lab.result(attempt, worker, found);
  await lab.accept(attempt, result);
  const before = await lab.tasks(scan);
  expect(await lab.accept(attempt, result)).toBe('duplicate');
  expect(await lab.accept(attempt, { ...result, durationMs: 99, v: 1 })).toBe('duplicate');
  expect(await lab.accept(attempt, resultOf(attempt, worker, failing))).toBe('conflict');
  expect(await lab.tasks(scan)).toEqual(before);
  expect(await counts()).toEqual({ results: 1, finalizations: 1, files: 1 });
});

test('of many results of one attempt at once one is accepted', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await lab.start(attempt, worker);
  const results: Result[] = Array.from({ length: 8 }, (_, index) =>
    resultOf(attempt, worker, { ...failing, exitCode: 1 + (index % 2) }),
  );
  const dispositions = await whileLocked(
    { holder: clone.open(1), observer: clone.open(1) },
    (tx) => tx.rows(query`select from sonar.task where task_id = ${attempt.task_id} for update`),
    results.length,
    () => Promise.all(results.map((result) => lab.accept(attempt, result))),
  );
  const winner = results[dispositions.indexOf('accepted')]?.digest;
  expect(dispositions.filter((disposition) => disposition === 'accepted')).toHaveLength(1);
  expect(dispositions.filter((disposition) => disposition === 'duplicate')).toHaveLength(
    results.filter((result) => result.digest === winner).length - 1,
  );
  expect(dispositions.filter((disposition) => disposition === 'conflict')).toHaveLength(4);
});

test('a crash in the accepting transaction leaves the task Running and nothing enqueued', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await lab.start(attempt, worker);
  const result = await lab.result(attempt, worker, found);
  const crashing = faultyDatabase(clone.database, (name) => name === 'result.insert_finalizations');
  await expect(lab.with({ database: crashing }).accept(attempt, result)).rejects.toThrow('injected fault');
  expect(await lab.tasks(scan)).toMatchObject([
    { status: 'Running', accepted_digest: null, finalized: true },
  ]);
  expect(await counts()).toEqual({ results: 0, finalizations: 0, files: 0 });
  expect(await lab.accept(attempt, result)).toBe('accepted');
});

test('a failure with budget left goes back to Pending with a doubling backoff, and is not read', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: retrying });
  let current = attempt;
  const waits: number[] = [];
  for (let time = 1; time <= 2; time += 1) {
    expect(await lab.run(current, worker, found, failing)).toBe('accepted');
    expect(await lab.tasks(scan)).toMatchObject([
      {
        status: 'Pending',
        attempt_id: null,
        tag: null,
        retries: time,
        accepted_attempt_id: null,
        finalized: true,
      },
    ]);
    const [row] = await clone.database.rows<{ seconds: number }>(
      query`select extract(epoch from not_before - clock_timestamp())::float as seconds from sonar.task`,
    );
    waits.push(row?.seconds ?? 0);
    await clone.database.execute(query`update sonar.task set not_before = null`);
    await lab.place();
    [current] = (await lab.published(scan)) as [typeof attempt];
  }
  expect(waits[0]).toBeGreaterThan(20);
  expect(waits[0]).toBeLessThanOrEqual(30);
  expect(waits[1]).toBeGreaterThan(35);
  expect(waits[1]).toBeLessThanOrEqual(45);
  expect(await counts()).toMatchObject({ finalizations: 0 });
  await lab.run(current, worker, found, failing);
  expect(await lab.tasks(scan)).toMatchObject([
    {
      status: 'Failed',
      failure_code: 'command_failed',
      failure_message: 'the command exited with 3',
      retries: 2,
    },
  ]);
  expect(await counts()).toMatchObject({ finalizations: 1 });
});

test('the result of an attempt whose task was tried again is a duplicate of what was accepted', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: retrying });
  const result = resultOf(attempt, worker, failing);
  await lab.start(attempt, worker);
  await lab.accept(attempt, result);
  const before = await lab.tasks(scan);
  expect(await lab.accept(attempt, result)).toBe('duplicate');
  expect(await lab.accept(attempt, resultOf(attempt, worker))).toBe('conflict');
  expect(await lab.tasks(scan)).toEqual(before);
});

test('a result that calls itself completed without a declared output is corrected to a failure', async () => {
  const source = oneStep.replace('optional: true, ', '');
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source });
  expect(await lab.run(attempt, worker)).toBe('accepted');
  expect(await lab.tasks(scan)).toMatchObject([
    {
      status: 'Failed',
      failure_code: 'output_missing',
      failure_message: 'the command left no output "found"',
    },
  ]);
});

test.each([
  [
    'timed out',
    { outcome: 'timed_out', exitCode: null },
    'command_timed_out',
    'the command ran into its timeout',
  ],
  [
    'was killed',
    { outcome: 'failed', exitCode: null, signal: 'SIGKILL' },
    'command_failed',
    'the command was ended by SIGKILL',
  ],
  [
    'did not start',
    { outcome: 'not_started', exitCode: null, failure: { code: 'input_unavailable', message: 'no list' } },
    'input_unavailable',
    'no list',
  ],
] as const)(
  'a command that %s fails with its own code, and what it left is read as partial',
  async (_what, changes, code, message) => {
    const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
    expect(await lab.run(attempt, worker, found, changes)).toBe('accepted');
    expect(await lab.tasks(scan)).toMatchObject([
      { status: 'Failed', failure_code: code, failure_message: message, finalized: false },
    ]);
    expect(await clone.database.rows(query`select partial from sonar.output_file`)).toEqual([
      { partial: true },
    ]);
  },
);

test('what a failed command said is stored even where it holds what no database text can', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  const failure = { code: 'command_failed', message: 'nul \0 and half \ud800' };
  expect(await lab.run(attempt, worker, {}, { ...failing, failure, signal: 'S\0' })).toBe('accepted');
  expect(await lab.tasks(scan)).toMatchObject([{ failure_message: 'nul \uFFFD and half \uFFFD' }]);
});

test('a result after a cancel is superseded, and gives its slot free', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await lab.start(attempt, worker);
  const result = await lab.result(attempt, worker, found);
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  expect(await attemptEnds()).toEqual([{ end_reason: null }]);
  expect(await lab.settle(scan)).toBe('Cancelling');
  expect(await lab.accept(attempt, result)).toBe('superseded');
  expect(await attemptEnds()).toEqual([{ end_reason: 'superseded' }]);
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Cancelled', failure_code: 'scan_cancelled' }]);
  expect(await counts()).toEqual({ results: 0, finalizations: 0, files: 0 });
  expect(await lab.settle(scan)).toBe('Cancelled');
});

test('a result of an attempt that never said started, or is no longer current, is superseded', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  expect(await lab.accept(attempt, resultOf(attempt, worker))).toBe('superseded');
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Published' }]);
});
