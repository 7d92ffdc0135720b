// A fault that no retry mends ends a scan as Failed: what is open is cancelled for that reason, and a retry begins clean.
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine, fanOutAndIn, rowsOfUpstream } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { removeObject, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const stateOf = async (scan: ScanRow) => {
  const [row] = await clone.database.rows<{ status: string; failing: boolean; reason: string | null }>(
    query`select status, failing, reason from sonar.scan where scan_id = ${scan.scan_id}`,
  );
  return row;
};

/** Two of two tasks are Published when the child of the first takes the scan past its cap. */
async function pastItsCap() {
  const lab = openLaboratory(clone, objects, { SONAR_SCAN_TASK_CAP: 2 });
  const worker = await lab.worker();
  const scan = await lab.scan(fanOutAndIn, { inputs: { lines: ['a', 'b'] } });
  await lab.plan(scan);
  await lab.place();
  const [first, second] = await lab.published(scan);
  await lab.run(first!, worker);
  await lab.start(second!, worker);
  return { lab, worker, scan };
}

test('a scan past its task cap is cancelled as failing, and ends as Failed once nothing of it runs', async () => {
  const { lab, worker, scan } = await pastItsCap();
  await lab.planOnce(scan);
  const reason = 'task_cap_exceeded: the scan has grown past 2 tasks';
  expect(await stateOf(scan)).toEqual({ status: 'Cancelling', failing: true, reason });
  await lab.plan(scan);
  expect((await lab.tasks(scan)).map((task) => [task.step, task.status, task.failure_code])).toEqual([
    ['each', 'Completed', null],
    ['each', 'Cancelled', 'scan_failed'],
    ['child', 'Cancelled', 'scan_failed'],
  ]);
  expect(await lab.settle(scan)).toBe('Cancelling');
  await worker.pulse();
  expect(await lab.settle(scan)).toBe('Failed');
  expect(await stateOf(scan)).toEqual({ status: 'Failed', failing: true, reason });
});

test('an expansion that would go past the cap fails the scan before it makes the items', async () => {
  const lab = openLaboratory(clone, objects, { SONAR_SCAN_TASK_CAP: 2 });
  const scan = await lab.scan(eachLine, { inputs: { lines: ['a', 'b', 'c'] } });
  await lab.plan(scan);
  expect(await lab.tasks(scan)).toEqual([]);
  expect(await lab.settle(scan)).toBe('Failed');
  expect(await stateOf(scan)).toMatchObject({
    reason: 'task_cap_exceeded: step each would take the scan past 2 tasks',
  });
});

test('a source that is lost for ever fails the scan, and cancels what is open for that reason', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(rowsOfUpstream);
  await lab.plan(scan);
  await lab.place();
  const [list] = await lab.published(scan);
  await lab.run(list!, worker, { rows: { 'rows.jsonl': '{"host":"a.example.com"}\n' } });
  await lab.finalize();
  const [file] = await clone.database.rows<{ object_key: string }>(
    query`select object_key from sonar.output_file`,
  );
  await removeObject(file!.object_key);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Failed');
  expect((await stateOf(scan))?.reason).toMatch(/^source_lost: step each: no object /);
});

test('a cancel during the failing keeps it failing', async () => {
  const { lab, scan, worker } = await pastItsCap();
  await lab.plan(scan);
  expect(await cancelScan(clone.database, scan.scan_id, 'enough')).toMatchObject({ status: 'Cancelling' });
  await lab.plan(scan);
  await worker.pulse();
  expect(await lab.settle(scan)).toBe('Failed');
});

test('a retry of a Failed scan is not failing any more: a later cancel ends it as Cancelled', async () => {
  const { lab, worker, scan } = await pastItsCap();
  await lab.plan(scan);
  await worker.pulse();
  await lab.settle(scan);
  const { scan: reopened } = await retryTasks(lab, scan.scan_id, null);
  expect(reopened).toMatchObject({ status: 'Running', failing: false, reason: null });
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  expect((await lab.tasks(scan)).map((task) => task.failure_code)).toEqual([
    null,
    'scan_cancelled',
    'scan_cancelled',
  ]);
  expect(await lab.settle(scan)).toBe('Cancelled');
});
