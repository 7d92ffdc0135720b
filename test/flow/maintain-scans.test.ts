// Open scans that nobody ticks get their workflow again, and old ledger rows go. Temporal is scripted here: which of
// its calls are made for which scan, and what a refusal of one leads to, is the point; a real server gives no refusal
// on request. The workflow tests and the tests end to end use real ones.
import type { ScanId } from '#sonar/contracts/ids.ts';
import { maintainScans } from '#sonar/flow/maintain-scans.ts';
import type { ScanTitle, TemporalGateway } from '#sonar/transport/temporal-client.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { fleetLives, minutes, seconds, timePasses } from '../fixtures/passing-time.ts';
import { query } from '../fixtures/query.ts';
import { scriptedTemporal } from '../fixtures/scripted-temporal.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const silence = (scanId: ScanId, interval = '4 minutes') =>
  clone.database.execute(query`
    update sonar.scan set created_at = now() - ${interval}::interval, last_tick_at = null where scan_id = ${scanId}`);
const maintain = (temporal: TemporalGateway) =>
  maintainScans({ ...openLaboratory(clone, objects), temporal });

test('the workflow of each open scan without a tick for 3 minutes is started', async () => {
  const lab = openLaboratory(clone, objects);
  const neverTicked = await lab.scan(oneStep);
  const ticking = await lab.scan(oneStep);
  const ended = await lab.scan(oneStep);
  const cancelling = await lab.scan(oneStep);
  await silence(neverTicked.scan_id);
  await silence(ended.scan_id);
  await silence(cancelling.scan_id);
  await lab.planOnce(ticking);
  await clone.database.execute(query`
    update sonar.scan set status = 'Completed', finished_at = now() where scan_id = ${ended.scan_id}`);
  await clone.database.execute(
    query`update sonar.scan set status = 'Cancelling' where scan_id = ${cancelling.scan_id}`,
  );
  const temporal = scriptedTemporal();
  expect(await maintain(temporal)).toEqual({
    restarted: 2,
    recovered: new Map(),
    purged: 0,
    retired: 0,
    unread: false,
  });
  expect(temporal.calls.toSorted()).toEqual(
    [neverTicked, cancelling].map((scan) => `startScan ${scan.scan_id}`).toSorted(),
  );
});

test('a workflow that keeps failing is made anew instead of being started beside itself', async () => {
  const scan = await openLaboratory(clone, objects).scan(oneStep);
  await silence(scan.scan_id);
  const asked: [ScanTitle, number][] = [];
  const temporal = scriptedTemporal({
    restartIfFailing: (title, failures) => {
      asked.push([title, failures]);
      return Promise.resolve(true);
    },
  });
  expect(await maintain(temporal)).toMatchObject({ restarted: 1 });
  expect(asked).toEqual([[{ scanId: scan.scan_id, name: 'one-step', definition: 'one-step' }, 10]]);
  expect(temporal.calls).toEqual([]);
});

test('a scan that Temporal refuses does not keep the others from theirs', async () => {
  const lab = openLaboratory(clone, objects);
  const scans = [await lab.scan(oneStep), await lab.scan(oneStep), await lab.scan(oneStep)];
  for (const scan of scans) await silence(scan.scan_id);
  const refused = scans[1]!.scan_id;
  const started: string[] = [];
  const temporal = scriptedTemporal({
    startScan: ({ scanId }) => {
      if (scanId === refused) return Promise.reject(new Error('refused'));
      started.push(scanId);
      return Promise.resolve();
    },
  });
  expect(await maintain(temporal)).toMatchObject({ restarted: 2 });
  expect(started).toHaveLength(2);
});

test('ledger rows past their time go, those still in the queue stay', async () => {
  const { lab } = await dispatchedScan(clone, objects, { lines: 2 });
  await lab.scan(oneStep);
  await clone.database.execute(query`update sonar.outbox_events set created_at = now() - interval '8 days'`);
  await clone.database.execute(query`
    insert into sonar.outbox_delivery_queue (event_id, workspace_id, bytes) select event_id, workspace_id, 2 from sonar.outbox_events limit 1`);
  expect(await maintain(scriptedTemporal())).toMatchObject({ purged: 1 });
  expect(
    await clone.database.rows(query`select count(*)::integer as events from sonar.outbox_events`),
  ).toEqual([{ events: 1 }]);
});

test('results that wait to be read are told, so that they finish without their scan', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await lab.run(attempt, worker, { found: { 'found.jsonl': '{"url":"http://a.example.com/"}' } });
  expect(await maintain(scriptedTemporal())).toMatchObject({ unread: true });
  await lab.finalize();
  expect(await maintain(scriptedTemporal())).toMatchObject({ unread: false });
});

test('lost tasks are looked for, so that they are found without their scan', async () => {
  const { lab, worker, attempt, scan } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker);
  const successor = await lab.worker();
  await fleetLives(clone.database, [successor], seconds(40));
  const { recovered } = await maintain(scriptedTemporal());
  expect([...recovered]).toEqual([[scan.scan_id, { tasks: 1, failed: 0 }]]);
});

test('incarnations of long ago go, but for those that still hold something', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker);
  await lab.worker();
  await lab.worker({ name: 'w2' });
  await timePasses(clone.database, 8 * minutes(24 * 60));
  const young = await lab.worker({ name: 'w3' });
  // Nobody has looked for what the first of them holds: the intake has been open for no time.
  await clone.database.execute(query`update sonar.recovery set passed_at = now()`);
  expect(await maintain(scriptedTemporal())).toMatchObject({ retired: 2 });
  expect(
    (
      await clone.database.rows(
        query`select incarnation_id from sonar.worker_incarnation order by registered_at`,
      )
    ).map((row) => (row as { incarnation_id: string }).incarnation_id),
  ).toEqual([worker.incarnationId, young.incarnationId]);
});
