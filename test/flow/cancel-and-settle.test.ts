// A scan ends when nothing of it is open, and never before.
import type { ScanId } from '#sonar/contracts/ids.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { settleScan } from '#sonar/flow/settle-scan.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine, fanOutAndIn, oneStep } from '../fixtures/definition-texts.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { whileLocked } from '../fixtures/lock-waits.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const failing = { outcome: 'failed', exitCode: 1 } as const;
const found = { found: { 'found.jsonl': '{"url":"http://a.example.com/"}\n' } };
const scanRow = async () => {
  const [row] = await clone.database.rows<{ status: string; reason: string | null; finished: boolean }>(
    query`select status, reason, finished_at is not null as finished from sonar.scan`,
  );
  return row;
};

test('a scan is not settled while a task is Pending, Published, Running or unread, nor while a step is open', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  expect(await lab.settle(scan)).toBe('Running');
  await lab.start(attempt, worker);
  expect(await lab.settle(scan)).toBe('Running');
  await lab.accept(attempt, await lab.result(attempt, worker, found));
  expect(await lab.settle(scan)).toBe('Running');
  await lab.finalize();
  expect(await lab.settle(scan)).toBe('Running');
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Completed');
  expect(await scanRow()).toEqual({ status: 'Completed', reason: null, finished: true });
  expect(await lab.settle(scan)).toBe('Completed');
});

const stepsSettled = () => clone.database.execute(query`update sonar.scan_step set state = 'settled'`);

test('a scan is not settled while an expansion is open', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachLine, { inputs: { lines: 'a' } });
  await lab.planOnce(scan);
  await stepsSettled();
  expect(await lab.settle(scan)).toBe('Running');
});

test('a scan is not settled while the children of a finished task are owed', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.run(attempt, worker);
  await stepsSettled();
  expect(await lab.settle(scan)).toBe('Running');
  await clone.database.execute(query`update sonar.task set plan_due = false`);
  expect(await lab.settle(scan)).toBe('Completed');
});

test('a scan is not settled while a result is unread, whatever its steps say', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await lab.start(attempt, worker);
  await lab.accept(attempt, await lab.result(attempt, worker, found));
  await stepsSettled();
  await clone.database.execute(query`update sonar.task set plan_due = false`);
  expect(await lab.settle(scan)).toBe('Running');
  await lab.finalize();
  await clone.database.execute(query`update sonar.task set plan_due = false`);
  expect(await lab.settle(scan)).toBe('Completed');
});

test('a Paused scan is not settled', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.run(attempt, worker);
  await lab.plan(scan);
  await clone.database.execute(query`update sonar.scan set status = 'Paused'`);
  expect(await lab.settle(scan)).toBe('Paused');
});

test('some failures among successes still make it Completed', async () => {
  const { lab, worker, scan, attempts } = await dispatchedScan(clone, objects, { lines: 3 });
  await lab.run(attempts[0]!, worker);
  await lab.run(attempts[1]!, worker, {}, failing);
  await lab.run(attempts[2]!, worker, {}, failing);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Completed');
});

test('a step with terminal tasks of which none completed makes it CompletedWithErrors', async () => {
  const { lab, worker, scan, attempts } = await dispatchedScan(clone, objects, { lines: 2 });
  for (const attempt of attempts) await lab.run(attempt, worker, {}, failing);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('CompletedWithErrors');
});

test('settling many times at once gives one end', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.run(attempt, worker);
  await lab.plan(scan);
  const ends = await Promise.all(Array.from({ length: 6 }, () => settleScan(clone.open(1), scan.scan_id)));
  expect(new Set(ends)).toEqual(new Set(['Completed']));
});

test('what commits while a settling waits for the scan is seen by it', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.run(attempt, worker);
  await lab.plan(scan);
  const settled = await whileLocked(
    { holder: clone.open(1), observer: clone.open(1) },
    async (tx) => {
      await tx.rows(query`select from sonar.scan where scan_id = ${scan.scan_id} for update`);
      await tx.execute(query`
        insert into sonar.task (task_id, workspace_id, scan_id, step, item_ordinal, status, definition_revision)
        values (${newId()}, 'default', ${scan.scan_id}, 'each', 99, 'Pending', 1)`);
    },
    1,
    () => lab.settle(scan),
  );
  expect(settled).toBe('Running');
  expect(await scanRow()).toMatchObject({ status: 'Running' });
});

test('a Paused scan can be cancelled', async () => {
  const { lab, scan } = await dispatchedScan(clone, objects);
  await clone.database.execute(query`update sonar.scan set status = 'Paused'`);
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Cancelled');
});

test('a scan that is not there has no state', async () => {
  expect(await settleScan(clone.database, newId<ScanId>())).toBeUndefined();
  await expect(cancelScan(clone.database, newId<ScanId>(), 'x')).rejects.toMatchObject({ code: 'not_found' });
});

test('a cancel ends what is Pending and Published at once, and waits for what runs', async () => {
  const { lab, worker, scan, attempts } = await dispatchedScan(clone, objects, { lines: 2 });
  const [running] = attempts;
  await lab.start(running!, worker);
  expect(await cancelScan(clone.database, scan.scan_id, 'enough')).toMatchObject({
    status: 'Cancelling',
    reason: 'enough',
  });
  expect(await cancelScan(clone.database, scan.scan_id, 'again')).toMatchObject({
    status: 'Cancelling',
    reason: 'enough',
  });
  await lab.plan(scan);
  expect((await lab.tasks(scan)).map((task) => [task.status, task.failure_code])).toEqual([
    ['Cancelled', 'scan_cancelled'],
    ['Cancelled', 'scan_cancelled'],
  ]);
  expect(await lab.settle(scan)).toBe('Cancelling');
  await worker.pulse({ attempts: [] });
  expect(await lab.settle(scan)).toBe('Cancelled');
  expect(await scanRow()).toEqual({ status: 'Cancelled', reason: 'enough', finished: true });
  expect(await cancelScan(clone.database, scan.scan_id, 'late')).toMatchObject({ status: 'Cancelled' });
});

test('accepted results are still read after a cancel, and only then the scan is Cancelled', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await lab.run(attempt, worker, found);
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Cancelling');
  await lab.finalize();
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Completed', finalized: true }]);
  expect(await lab.settle(scan)).toBe('Cancelled');
  expect(await clone.database.rows(query`select key from sonar.inventory`)).toEqual([
    { key: 'http://a.example.com/' },
  ]);
});

test.each([
  [
    'its worker is absent, while others were heard for 10 minutes',
    query`with open as (update sonar.pulse_intake set open_since = now() - interval '11 minutes') update sonar.worker_incarnation set pulsed_at = now() - interval '1 minute'`,
  ],
  ['its worker was replaced', query`update sonar.worker_incarnation set replaced_at = now()`],
  [
    'it was asked to end 10 minutes ago',
    query`update sonar.attempt set cancel_requested_at = now() - interval '11 minutes'`,
  ],
])('an attempt that is ending counts no longer when %s', async (_what, change) => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker);
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Cancelling');
  await clone.database.execute(change);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Cancelled');
});

test('nothing is planned or made any more in a scan that is being cancelled', async () => {
  const { lab, worker, scan } = await dispatchedScan(clone, objects);
  const other = await lab.scan(fanOutAndIn, { inputs: { lines: ['a'] } });
  await lab.plan(other);
  await lab.place();
  await lab.run((await lab.published(other))[0]!, worker);
  await cancelScan(clone.database, other.scan_id, 'enough');
  expect(await lab.plan(other)).toBe(0);
  expect(await lab.tasks(other, 'child')).toEqual([]);
  expect(await lab.settle(scan)).toBe('Running');
});

test('a scan that has ended otherwise cannot be cancelled', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.run(attempt, worker);
  await lab.plan(scan);
  await lab.settle(scan);
  await expect(cancelScan(clone.database, scan.scan_id, 'late')).rejects.toMatchObject({
    code: 'conflict',
    message: `scan ${scan.scan_id} has ended: Completed`,
  });
});
