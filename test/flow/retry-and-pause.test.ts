// An operator holds a scan, lets it go, and has what failed tried again.
import { pauseScan } from '#sonar/flow/pause-scan.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { settleScan } from '#sonar/flow/settle-scan.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine, fanOutAndIn } from '../fixtures/definition-texts.ts';
import { type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const failing = { outcome: 'failed', exitCode: 1 } as const;

const stepsOf = async () =>
  Object.fromEntries(
    (
      await clone.database.rows<{ step: string; state: string }>(
        query`select step, state from sonar.scan_step`,
      )
    ).map((row) => [row.step, row.state]),
  );

/** Lines a, b and c; the command of `b` fails, everything else is done, and the scan has ended. */
async function endedWithOneFailure(lab: Laboratory) {
  const worker = await lab.worker({ slots: 8 });
  const scan = await lab.scan(fanOutAndIn, { inputs: { lines: 'a\nb\nc' } });
  await lab.plan(scan);
  await lab.place();
  const [a, b, c] = await lab.published(scan, 'each');
  await lab.run(a!, worker);
  await lab.run(b!, worker, {}, failing);
  await lab.run(c!, worker);
  await finishAll(lab, scan, worker);
  expect(await lab.settle(scan)).toBe('Completed');
  return { scan, worker };
}

async function finishAll(
  lab: Laboratory,
  scan: Parameters<Laboratory['plan']>[0],
  worker: Awaited<ReturnType<Laboratory['worker']>>,
) {
  for (let round = 0; round < 5; round += 1) {
    await lab.plan(scan);
    await lab.place();
    for (const attempt of await lab.published(scan)) await lab.run(attempt, worker);
  }
}

test('a retry runs the failed task anew, supersedes what rested on all results, and the scan ends again', async () => {
  const lab = openLaboratory(clone, objects);
  const { scan, worker } = await endedWithOneFailure(lab);
  const [firstReport] = await lab.tasks(scan, 'report');
  const { scan: reopened, retried } = await retryTasks(lab, scan.scan_id, null);
  expect(retried).toBe(1);
  expect(reopened).toMatchObject({ status: 'Running', generation: 2, finished_at: null });
  expect(await stepsOf()).toEqual({ each: 'open', child: 'open', report: 'open' });
  await finishAll(lab, reopened, worker);
  expect(await lab.settle(reopened)).toBe('Completed');
  const live = await clone.database.rows<{ step: string; status: string; tasks: number }>(
    query`select step, status, count(*) as tasks from sonar.task where superseded_at is null group by 1, 2 order by 1, 2`,
  );
  expect(live).toEqual([
    { step: 'child', status: 'Completed', tasks: 3 },
    { step: 'each', status: 'Completed', tasks: 3 },
    { step: 'report', status: 'Completed', tasks: 1 },
  ]);
  const [sources] = await clone.database.rows<{ first: number; second: number }>(
    query`select (select count(*) from sonar.pinned_source where owner_id = (select sources_id from sonar.task where task_id = ${firstReport!.task_id})) as first,
                 (select count(*) from sonar.pinned_source where owner_id = (select sources_id from sonar.task where step = 'report' and superseded_at is null)) as second`,
  );
  expect(sources).toEqual({ first: 2, second: 3 });
});

test('a retried task starts from nothing: counters, attempt and accepted result are cleared', async () => {
  const lab = openLaboratory(clone, objects);
  const { scan } = await endedWithOneFailure(lab);
  await clone.database.execute(query`update sonar.task set retries = 1, releases = 2, recoveries = 3`);
  await retryTasks(lab, scan.scan_id, null);
  const pending = (await lab.tasks(scan, 'each')).filter((task) => task.status === 'Pending');
  expect(pending).toHaveLength(1);
  expect(pending[0]).toMatchObject({
    attempt_id: null,
    accepted_attempt_id: null,
    failure_code: null,
    exit_code: null,
    retries: 0,
    releases: 0,
    recoveries: 0,
  });
});

test('a late result of the attempt before the retry is what it was, and changes nothing', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: 'a' } });
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  await lab.start(attempt!, worker);
  const result = await lab.result(attempt!, worker, {}, failing);
  expect(await lab.accept(attempt!, result)).toBe('accepted');
  await retryTasks(lab, scan.scan_id, null);
  expect(await lab.accept(attempt!, result)).toBe('duplicate');
  expect(await lab.accept(attempt!, await lab.result(attempt!, worker))).toBe('conflict');
  expect((await lab.tasks(scan))[0]).toMatchObject({ status: 'Pending', attempt_id: null });
});

test('running work of a superseded step is asked to end, and its late result is superseded', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker({ slots: 8 });
  const scan = await lab.scan(fanOutAndIn, { inputs: { lines: 'a\nb' } });
  await lab.plan(scan);
  await lab.place();
  const [a, b] = await lab.published(scan, 'each');
  await lab.run(a!, worker);
  await lab.run(b!, worker, {}, failing);
  await lab.plan(scan);
  await lab.place();
  const [child] = await lab.published(scan, 'child');
  await lab.run(child!, worker);
  await lab.plan(scan);
  await lab.place();
  const [report] = await lab.published(scan, 'report');
  await lab.start(report!, worker);
  await retryTasks(lab, scan.scan_id, null);
  const [attempt] = await clone.database.rows<{ asked: boolean; ended: boolean }>(
    query`select cancel_requested_at is not null as asked, ended_at is not null as ended from sonar.attempt where attempt_id = ${report!.attempt_id}`,
  );
  expect(attempt).toEqual({ asked: true, ended: false });
  expect(await lab.accept(report!, await lab.result(report!, worker))).toBe('superseded');
});

test('there must be something to retry, and a scan that is being cancelled is left alone', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachLine, { inputs: { lines: 'a' } });
  await lab.plan(scan);
  await expect(retryTasks(lab, scan.scan_id, null)).rejects.toMatchObject({ code: 'conflict' });
  await clone.database.execute(query`update sonar.scan set status = 'Cancelling'`);
  await expect(retryTasks(lab, scan.scan_id, null)).rejects.toMatchObject({ code: 'conflict' });
});

test('a Paused scan plans, places and settles nothing; results go on; resumed it goes to its end', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker({ slots: 1 });
  const scan = await lab.scan(fanOutAndIn, { inputs: { lines: 'a\nb\nc' } });
  await lab.plan(scan);
  await lab.place();
  const running = await lab.published(scan);
  expect(running.length).toBeLessThan(3);
  expect(await pauseScan(clone.database, scan.scan_id, 'pause')).toMatchObject({ status: 'Paused' });
  expect(await pauseScan(clone.database, scan.scan_id, 'pause')).toMatchObject({ status: 'Paused' });
  for (const attempt of running) expect(await lab.run(attempt, worker)).toBe('accepted');
  expect(await lab.plan(scan)).toBe(0);
  expect((await lab.place())?.placed).toEqual([]);
  expect(await settleScan(clone.database, scan.scan_id)).toBe('Paused');
  await pauseScan(clone.database, scan.scan_id, 'resume');
  await finishAll(lab, scan, worker);
  expect(await lab.settle(scan)).toBe('Completed');
  await expect(pauseScan(clone.database, scan.scan_id, 'pause')).rejects.toMatchObject({ code: 'conflict' });
});
