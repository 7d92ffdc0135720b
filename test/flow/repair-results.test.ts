// A result that could not be read is kept with its fault; repaired, it is read and everything that rested on it follows.

import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { pauseScan } from '#sonar/flow/pause-scan.ts';
import { planScan } from '#sonar/flow/plan-scan.ts';
import { repairResult, repairResultsOf } from '#sonar/flow/repair-results.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { unfinishedFinalizations } from '#sonar/stores/finalizations.ts';
import { findScan, type ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import type { LiveWorker } from '../fixtures/live-worker.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { page, unreadResults } from '../fixtures/unread-results.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const { keys, meanwhile } = unreadResults(clone, objects);

const listAndReport = `
sonar: 1
name: list-and-report
inputs: {lines: {type: lines, default: "a\\nb"}}
steps:
  each:
    tags: [t]
    foreach: {in: inputs.lines}
    command: [x]
    outputs: {found: {path: found.jsonl, read: {format: jsonl, record: endpoint, fields: {url: url, title: title}}}}
  child: {tags: [t], needs: {each: single}, command: [x]}
  report: {tags: [t], needs: {each: all}, command: [x]}
`;

interface Poisoned {
  lab: Laboratory;
  worker: LiveWorker;
  scan: ScanRow;
  id: string;
}

/** Of lines a and b: the result of `b` could not be read; all else is done, and the scan has ended. */
async function poisoned(
  settings: Partial<Settings> = {},
  changes: Parameters<Laboratory['run']>[3] = {},
): Promise<Poisoned> {
  const lab = openLaboratory(clone, objects, { SONAR_FINALIZATION_ATTEMPTS: 1, ...settings });
  const worker = await lab.worker();
  const scan = await lab.scan(listAndReport);
  await lab.plan(scan);
  await lab.place();
  const [a, b] = await lab.published(scan, 'each');
  await lab.run(a!, worker, { found: { 'found.jsonl': page('a') } });
  await lab.finalize();
  await lab.run(b!, worker, { found: { 'found.jsonl': page('b') } }, changes);
  await meanwhile(lab, () => Promise.reject(new SonarError('invalid', 'no reader'))).finalize();
  await finishAll(lab, scan, worker);
  const [row] = await clone.database.rows<{ finalization_id: string }>(
    query`select finalization_id from sonar.finalization where status = 'poisoned'`,
  );
  return { lab, worker, scan, id: row!.finalization_id };
}

async function finishAll(lab: Laboratory, scan: ScanRow, worker: LiveWorker): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    await lab.plan(scan);
    await lab.place();
    for (const attempt of await lab.published(scan)) await lab.run(attempt, worker);
    await lab.finalize();
  }
}

const repair = (id: string) => repairResult(openLaboratory(clone, objects), 'default', id);
const live = async () =>
  (
    await clone.database.rows<{ step: string; status: string; tasks: number }>(query`
      select step, status, count(*) as tasks from sonar.task where superseded_at is null group by 1, 2 order by 1, 2`)
  ).map(({ step, status, tasks }) => `${step} ${status} ${tasks}`);

test('a repair reads the result, completes its task, makes what rested on all results anew, and the scan ends again', async () => {
  const { lab, worker, scan, id } = await poisoned();
  expect(await lab.settle(scan)).toBe('CompletedWithErrors');
  expect(await live()).toEqual([
    'child Completed 1',
    'each Completed 1',
    'each Failed 1',
    'report Completed 1',
  ]);
  const { scan: reopened, repaired } = await repair(id);
  expect(repaired).toBe(1);
  expect(reopened).toMatchObject({ status: 'Running', generation: 2, finished_at: null });
  expect(await live()).toEqual(['child Completed 1', 'each Completed 1', 'each Failed 1']);
  // Not before it is read: the task is open until then.
  expect(await lab.plan(reopened)).toBe(0);
  expect(await lab.settle(reopened)).toBe('Running');
  await finishAll(lab, reopened, worker);
  expect(await lab.settle(reopened)).toBe('Completed');
  expect(await live()).toEqual(['child Completed 2', 'each Completed 2', 'report Completed 1']);
  expect(await keys()).toEqual(['http://a.example.com/', 'http://b.example.com/']);
});

test('the tasks of a repaired result lose the reason of the poison', async () => {
  const { lab, worker, scan, id } = await poisoned();
  await lab.settle(scan);
  await repair(id);
  await finishAll(lab, scan, worker);
  expect((await lab.tasks(scan, 'each'))[1]).toMatchObject({
    status: 'Completed',
    failure_code: null,
    failure_message: null,
    finalized: true,
  });
});

test('asked again while it waits to be read, a repair changes nothing; once it was read there is nothing to repair', async () => {
  const { lab, worker, scan, id } = await poisoned();
  await lab.settle(scan);
  await repair(id);
  expect(await repair(id)).toMatchObject({ repaired: 0, scan: { generation: 2 } });
  await finishAll(lab, scan, worker);
  await expect(repair(id)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('has been read'),
  });
});

test('a command that failed by itself stays Failed, and what rested on all results is left as it is', async () => {
  const { lab, worker, scan, id } = await poisoned({}, { outcome: 'failed', exitCode: 3 });
  const before = await live();
  await lab.settle(scan);
  await repair(id);
  expect(await live()).toEqual(before);
  await finishAll(lab, scan, worker);
  expect(await lab.settle(scan)).toBe('Completed');
  expect(await live()).toEqual(before);
  expect((await lab.tasks(scan, 'each'))[1]).toMatchObject({
    status: 'Failed',
    failure_code: 'command_failed',
  });
  expect(await keys()).toEqual(['http://a.example.com/', 'http://b.example.com/']);
});

test('a result that still cannot be read is poisoned again, with all its tries', async () => {
  const { lab, scan, id } = await poisoned();
  await lab.settle(scan);
  await repair(id);
  await meanwhile(lab, () => Promise.reject(new SonarError('invalid', 'still no reader'))).finalize();
  expect(
    await clone.database.rows(
      query`select status, attempts, error from sonar.finalization where finalization_id = ${id}`,
    ),
  ).toEqual([{ status: 'poisoned', attempts: 1, error: 'still no reader' }]);
  await lab.plan(scan);
  expect(await repair(id)).toMatchObject({ repaired: 1 });
});

test('a result whose task was retried, or made anew with what it rested on, is not repaired', async () => {
  const first = await poisoned();
  await first.lab.settle(first.scan);
  await retryTasks(first.lab, first.scan.scan_id, null);
  await expect(repair(first.id)).rejects.toMatchObject({ message: expect.stringContaining('was retried') });
  await clone.database.execute(
    query`update sonar.finalization set status = 'poisoned' where finalization_id = ${first.id}`,
  );
  await clone.database.execute(query`update sonar.task set superseded_at = now() where step = 'each'`);
  await expect(repair(first.id)).rejects.toMatchObject({ message: expect.stringContaining('made anew') });
  await expect(repair('none')).rejects.toMatchObject({ code: 'not_found' });
});

test('poison of a superseded task counts for nothing', async () => {
  const { lab, scan } = await poisoned();
  await clone.database.execute(query`update sonar.task set superseded_at = now() where step = 'each'`);
  expect(await lab.settle(scan)).toBe('Completed');
});

test('a superseded task whose result cannot be read is superseded, not poisoned', async () => {
  const lab = openLaboratory(clone, objects, { SONAR_FINALIZATION_ATTEMPTS: 1 });
  const worker = await lab.worker();
  const scan = await lab.scan(listAndReport);
  await lab.plan(scan);
  await lab.place();
  const [a] = await lab.published(scan, 'each');
  await lab.run(a!, worker, { found: { 'found.jsonl': 'no json' } });
  await clone.database.execute(
    query`update sonar.task set superseded_at = now() where task_id = ${a!.task_id}`,
  );
  await lab.finalize();
  expect(await unfinishedFinalizations(clone.database, scan.scan_id)).toEqual({ due: 0, poisoned: 0 });
});

test('of a running or paused scan a result is repaired at once, and the scan stays what it is', async () => {
  const { lab, scan, id } = await poisoned();
  await pauseScan(clone.database, scan.scan_id, 'pause');
  expect((await repair(id)).scan).toMatchObject({ status: 'Paused', generation: 1 });
  await lab.finalize();
  expect((await lab.tasks(scan, 'each'))[1]).toMatchObject({ status: 'Completed', plan_due: true });
  await pauseScan(clone.database, scan.scan_id, 'resume');
  expect(await lab.plan(scan)).toBeGreaterThan(0);
});

test('of a Cancelled scan a result is read and nothing else begins: it ends Cancelled again', async () => {
  const { lab, scan, id } = await poisoned();
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await expect(repair(id)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('being cancelled'),
  });
  await planScan(lab, scan.scan_id);
  expect(await lab.settle(scan)).toBe('Cancelled');
  const before = await live();
  expect((await repair(id)).scan).toMatchObject({ status: 'Cancelling', generation: 2, reason: 'enough' });
  expect(await live()).toEqual(before);
  expect(await lab.settle(scan)).toBe('Cancelling');
  await lab.finalize();
  await lab.plan(scan);
  expect((await lab.place())?.placed).toEqual([]);
  expect(await lab.settle(scan)).toBe('Cancelled');
  expect(await keys()).toContain('http://b.example.com/');
});

test('what was read of a Cancelled scan is given to all that rests on it when the scan goes on', async () => {
  const { lab, worker, scan, id } = await poisoned();
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await planScan(lab, scan.scan_id);
  await lab.settle(scan);
  expect(await live()).toEqual([
    'child Completed 1',
    'each Completed 1',
    'each Failed 1',
    'report Completed 1',
  ]);
  await repair(id);
  await lab.finalize();
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Cancelled');
  // Nothing of it has failed any more: it goes on for what it owes.
  const { scan: open, retried } = await retryTasks(lab, scan.scan_id, null);
  expect({ status: open.status, retried }).toEqual({ status: 'Running', retried: 0 });
  await finishAll(lab, open, worker);
  expect(await lab.settle(open)).toBe('Completed');
  expect(await live()).toEqual(['child Completed 2', 'each Completed 2', 'report Completed 1']);
  const [sources] = await clone.database.rows(query`
    select count(*)::integer as sources from sonar.pinned_source where owner_id =
      (select sources_id from sonar.task where step = 'report' and superseded_at is null)`);
  expect(sources).toEqual({ sources: 2 });
  await expect(retryTasks(lab, scan.scan_id, null)).rejects.toMatchObject({ code: 'conflict' });
});

test('of a Failed scan a result is read, and it ends Failed again', async () => {
  const { lab, scan, id } = await poisoned();
  await clone.database.execute(
    query`update sonar.scan set status = 'Failed', failing = true, finished_at = now()`,
  );
  expect((await repair(id)).scan).toMatchObject({ status: 'Cancelling', failing: true });
  await lab.finalize();
  expect(await lab.settle(scan)).toBe('Failed');
});

test('all of a scan are repaired together, and there must be one', async () => {
  const { lab, worker, scan } = await poisoned();
  await lab.settle(scan);
  expect(await repairResultsOf(openLaboratory(clone, objects), scan.scan_id)).toMatchObject({ repaired: 1 });
  await finishAll(lab, scan, worker);
  expect(await lab.settle((await findScan(clone.database, scan.scan_id))!)).toBe('Completed');
  await expect(repairResultsOf(openLaboratory(clone, objects), scan.scan_id)).rejects.toMatchObject({
    code: 'conflict',
  });
});

test.each([
  ['a bad record', 'no json here\n', 'no json here'],
  ['hostile bytes', Buffer.from([0x1b, 0x5b, 0x32, 0x4a, 0x00, 0xff, 0x0a]), '\ufffd[2J\ufffd\ufffd'],
  ['a megabyte', 'x'.repeat(1_000_000), `${'x'.repeat(199)}…`],
])('the sample is bounded and safe to print: %s', async (_what, bytes, text) => {
  const lab = openLaboratory(clone, objects, { SONAR_FINALIZATION_ATTEMPTS: 1 });
  const worker = await lab.worker();
  const scan = await lab.scan(listAndReport);
  await lab.plan(scan);
  await lab.place();
  const [a] = await lab.published(scan, 'each');
  await lab.run(a!, worker, { found: { 'found.jsonl': bytes } });
  await lab.finalize();
  expect(
    await clone.database.rows(query`select status, sample_file, sample from sonar.finalization`),
  ).toEqual([{ status: 'poisoned', sample_file: 'found.jsonl', sample: text }]);
});
