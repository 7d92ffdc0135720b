// Which lost tasks are taken back, and which are left alone. Intake, holds and races have files of their own.
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { pauseScan } from '#sonar/flow/pause-scan.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import type { AttemptRow } from '#sonar/stores/attempts.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine, oneStep } from '../fixtures/definition-texts.ts';
import { type DispatchedScan, dispatchedScan } from '../fixtures/dispatched-scan.ts';
import type { Laboratory } from '../fixtures/laboratory.ts';
import type { LiveWorker } from '../fixtures/live-worker.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { fleetLives, minutes, seconds, timePasses } from '../fixtures/passing-time.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const ends = () =>
  clone.database.rows<{ end_reason: string | null; recovery_rule: string | null }>(
    query`select end_reason, recovery_rule from sonar.attempt order by created_at, number`,
  );
const busy = (attempts: readonly AttemptRow[]) => (worker: LiveWorker) =>
  worker.pulse({ freeSlots: 0, attempts: attempts.map((attempt) => attempt.attempt_id) });
async function taken(lab: Laboratory): Promise<number> {
  const result = await lab.recover();
  if (!result) throw new Error('the last pass was too short a time ago: this one would prove nothing');
  return [...result.scans.values()].reduce((sum, { tasks }) => sum + tasks, 0);
}
const statuses = async ({ lab, scan }: DispatchedScan) => (await lab.tasks(scan)).map((task) => task.status);

/** A second worker, which has no work and no tag of the scan's: the intake is open because of it. */
const bystander = (lab: Laboratory) => lab.worker({ name: 'bystander', tags: ['other'] });

test('a message that nobody starts is taken back 10 min after its confirm, while its tag shows a free slot', async () => {
  const scene = await dispatchedScan(clone, objects);
  const { lab, worker } = scene;
  await fleetLives(clone.database, [worker], minutes(10) - seconds(10));
  expect(await taken(lab)).toBe(0);
  await fleetLives(clone.database, [worker], seconds(20));
  expect(await taken(lab)).toBe(1);
  expect(await lab.tasks(scene.scan)).toMatchObject([
    { status: 'Pending', attempt_id: null, tag: null, recoveries: 0, not_before: null },
  ]);
  expect(await ends()).toEqual([{ end_reason: 'recovered', recovery_rule: 'not_started' }]);
  expect((await lab.place())?.placed).toMatchObject([{ tasks: 1 }]);
});

test('a busy fleet is not dispatched the same tasks again, however long its commands run', async () => {
  const scene = await dispatchedScan(clone, objects, { lines: 3 });
  const { lab, worker, attempts } = scene;
  await lab.start(attempts[0]!, worker);
  await fleetLives(clone.database, [worker], minutes(30), busy([attempts[0]!]));
  expect(await taken(lab)).toBe(0);
  // A slot that was free for a moment proves nothing.
  await timePasses(clone.database, seconds(10));
  await worker.pulse({ freeSlots: 1, attempts: [attempts[0]!.attempt_id] });
  expect(await taken(lab)).toBe(0);
  expect(await statuses(scene)).toEqual(['Running', 'Published', 'Published']);
});

test('a draining worker shows no free slot, whatever it says', async () => {
  const scene = await dispatchedScan(clone, objects);
  await fleetLives(clone.database, [scene.worker], minutes(11), (worker) => worker.pulse({ draining: true }));
  expect(await taken(scene.lab)).toBe(0);
});

test('a message that was never confirmed is not stale: its delivery is still to come', async () => {
  const lab = (await dispatchedScan(clone, objects)).lab;
  const worker = await lab.worker({ name: 'w2' });
  const scan = await lab.scan(eachLine, { inputs: { lines: ['a'] } });
  await lab.plan(scan);
  await lab.place();
  await clone.database.execute(query`update sonar.attempt set confirmed_at = null`);
  await fleetLives(clone.database, [worker], minutes(30));
  expect(await taken(lab)).toBe(0);
});

test('messages of a tag that no live worker has are taken back', async () => {
  const scene = await dispatchedScan(clone, objects);
  const other = await bystander(scene.lab);
  await fleetLives(clone.database, [other], minutes(10));
  expect(await taken(scene.lab)).toBe(1);
  expect(await ends()).toEqual([{ end_reason: 'recovered', recovery_rule: 'no_worker' }]);
});

test('a command that ran for 10 min is taken back once its worker is absent', async () => {
  const scene = await dispatchedScan(clone, objects);
  const { lab, worker, attempt } = scene;
  const other = await bystander(lab);
  await lab.start(attempt, worker);
  await fleetLives(clone.database, [worker, other], minutes(10), busy([attempt]));
  await fleetLives(clone.database, [other], seconds(30));
  expect(await taken(lab)).toBe(0);
  await fleetLives(clone.database, [other], seconds(10));
  expect(await taken(lab)).toBe(1);
  expect(await lab.tasks(scene.scan)).toMatchObject([
    { status: 'Pending', attempt_id: null, accepted_attempt_id: null, recoveries: 1 },
  ]);
  expect(await ends()).toEqual([{ end_reason: 'recovered', recovery_rule: 'worker_absent' }]);
});

test('a command of an absent worker waits for the age floor', async () => {
  const scene = await dispatchedScan(clone, objects);
  const other = await bystander(scene.lab);
  await fleetLives(clone.database, [scene.worker, other], minutes(9));
  await scene.lab.start(scene.attempt, scene.worker);
  await fleetLives(clone.database, [other], minutes(9));
  expect(await taken(scene.lab)).toBe(0);
  await fleetLives(clone.database, [other], minutes(1));
  expect(await taken(scene.lab)).toBe(1);
});

test('a long command on a live worker is left alone', async () => {
  const scene = await dispatchedScan(clone, objects);
  await scene.lab.start(scene.attempt, scene.worker);
  await fleetLives(clone.database, [scene.worker], minutes(30), busy([scene.attempt]));
  expect(await taken(scene.lab)).toBe(0);
  expect(await statuses(scene)).toEqual(['Running']);
});

test('two pulses after the start that do not list an attempt mean that its worker has lost it', async () => {
  const scene = await dispatchedScan(clone, objects, { lines: 2 });
  const { lab, worker, attempts } = scene;
  for (const attempt of attempts) await lab.start(attempt, worker);
  const kept = [attempts[1]!.attempt_id];
  await worker.pulse({ attempts: kept });
  expect(await taken(lab)).toBe(0);
  await timePasses(clone.database, seconds(10));
  await worker.pulse({ attempts: kept });
  expect(await taken(lab)).toBe(1);
  expect(await statuses(scene)).toEqual(['Pending', 'Running']);
  expect((await ends()).map((end) => end.recovery_rule)).toEqual(['not_listed', null]);
});

test('a pulse that lists the attempt again, or was sent before its start, counts no omission', async () => {
  const scene = await dispatchedScan(clone, objects);
  const { lab, worker, attempt } = scene;
  await lab.start(attempt, worker, { pulseSequence: 5 });
  for (const sequence of [3, 4, 5, 6]) await worker.pulse({ sequence });
  expect(await taken(lab)).toBe(0);
  await worker.pulse({ attempts: [attempt.attempt_id] });
  await worker.pulse();
  await timePasses(clone.database, seconds(10));
  expect(await taken(lab)).toBe(0);
  await worker.pulse();
  await timePasses(clone.database, seconds(10));
  expect(await taken(lab)).toBe(1);
});

test("a restarted worker's tasks are orphans 35 s after the new registration, whatever their age", async () => {
  const scene = await dispatchedScan(clone, objects);
  const { lab, worker, attempt } = scene;
  await lab.start(attempt, worker);
  const successor = await lab.worker();
  await fleetLives(clone.database, [successor], seconds(35), busy([]));
  await timePasses(clone.database, -seconds(1));
  expect(await taken(lab)).toBe(0);
  await timePasses(clone.database, seconds(6));
  expect(await taken(lab)).toBe(1);
  expect(await ends()).toEqual([{ end_reason: 'recovered', recovery_rule: 'worker_replaced' }]);
  // The older one, should it live, is told to end its command.
  expect(await worker.pulse({ attempts: [attempt.attempt_id] })).toMatchObject({
    replaced: true,
    superseded: [attempt.attempt_id],
  });
});

/** Started and lost by a restart of the worker. @returns the worker that comes after it */
async function loseOnce({ lab, scan }: DispatchedScan, worker: LiveWorker): Promise<LiveWorker> {
  const [attempt] = await lab.published(scan);
  await lab.start(attempt!, worker);
  const successor = await lab.worker();
  await fleetLives(clone.database, [successor], seconds(40));
  await lab.recover();
  await lab.place();
  await lab.publish();
  return successor;
}

test('the fourth loss after a start without a result is the last; an operator may try again', async () => {
  const scene = await dispatchedScan(clone, objects);
  const { lab, scan } = scene;
  let worker = scene.worker;
  for (const recoveries of [1, 2, 3]) {
    worker = await loseOnce(scene, worker);
    expect(await lab.tasks(scan)).toMatchObject([{ status: 'Published', recoveries }]);
  }
  await loseOnce(scene, worker);
  const [lost] = await lab.tasks(scan);
  expect(lost).toMatchObject({
    status: 'Failed',
    failure_code: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
    attempt_id: null,
    attempts: 4,
  });
  expect(lost?.failure_message).toContain('lost 4 times after a start without a result, last by worker "w1"');
  await retryTasks(lab, scan.scan_id, null);
  expect(await lab.tasks(scan)).toMatchObject([
    { status: 'Pending', recoveries: 0, retries: 0, releases: 0 },
  ]);
});

test('messages that nobody started are no losses: they come back as often as it takes', async () => {
  const { lab, scan, worker } = await dispatchedScan(clone, objects);
  for (let time = 1; time <= 5; time += 1) {
    await fleetLives(clone.database, [worker], minutes(11));
    expect(await taken(lab)).toBe(1);
    await lab.place();
    await lab.publish();
  }
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Published', recoveries: 0, attempts: 6 }]);
});

test('a paused scan recovers and places nothing; a scan that is being cancelled ends its attempts instead', async () => {
  const scene = await dispatchedScan(clone, objects);
  const { lab, worker, attempt, scan } = scene;
  await lab.start(attempt, worker);
  await pauseScan(clone.database, scan.scan_id, 'pause');
  const successor = await lab.worker();
  await fleetLives(clone.database, [successor], seconds(40));
  expect(await taken(lab)).toBe(1);
  await lab.place();
  expect(await statuses(scene)).toEqual(['Pending']);

  await pauseScan(clone.database, scan.scan_id, 'resume');
  await lab.place();
  await lab.publish();
  const [again] = await lab.published(scan);
  await lab.start(again!, successor);
  await cancelScan(clone.database, scan.scan_id, 'enough');
  const last = await lab.worker();
  await fleetLives(clone.database, [last], seconds(40));
  expect(await taken(lab)).toBe(0);
  await lab.plan(scan);
  expect(await statuses(scene)).toEqual(['Cancelled']);
  expect((await ends()).map((end) => end.end_reason)).toEqual(['recovered', 'cancelled']);
  expect(await lab.settle(scan)).toBe('Cancelled');
});

test('a cancelled attempt of a scan that goes on ends with its worker, and holds no slot after that', async () => {
  const { lab, worker, attempt, scan } = await dispatchedScan(clone, objects);
  const other = await bystander(lab);
  await lab.start(attempt, worker);
  await fleetLives(clone.database, [worker, other], minutes(10), busy([attempt]));
  await clone.database.execute(query`
    update sonar.task set status = 'Cancelled', attempt_id = null, finished_at = now(), failure_code = 'superseded' where scan_id = ${scan.scan_id}`);
  await clone.database.execute(query`update sonar.attempt set cancel_requested_at = now()`);
  expect(await lab.recover()).toMatchObject({ ended: 0 });
  await fleetLives(clone.database, [other], seconds(40));
  expect(await lab.recover()).toMatchObject({ ended: 1 });
  expect(await ends()).toEqual([{ end_reason: 'cancelled', recovery_rule: null }]);
});

test('the result of a recovered attempt is superseded, whenever it comes; the next attempt has the effects', async () => {
  const scene = await dispatchedScan(clone, objects, { source: oneStep });
  const { lab, worker, attempt, scan } = scene;
  await lab.start(attempt, worker);
  const late = await lab.result(attempt, worker, {
    found: { 'found.jsonl': '{"url":"http://a.example.com/"}' },
  });
  const successor = await loseOnceMore(scene);
  expect(await lab.accept(attempt, late)).toBe('superseded');
  const [next] = await lab.published(scan);
  expect(next?.key_id).toBeDefined();
  expect(next?.attempt_id).not.toBe(attempt.attempt_id);
  await lab.start(next!, successor);
  expect(await lab.accept(attempt, late)).toBe('superseded');
  const own = await lab.result(next!, successor, {
    found: { 'found.jsonl': '{"url":"http://b.example.com/"}' },
  });
  expect(await lab.accept(next!, own)).toBe('accepted');
  expect(await lab.accept(attempt, late)).toBe('superseded');
  await lab.finalize();
  expect(await clone.database.rows(query`select key from sonar.inventory`)).toEqual([
    { key: 'http://b.example.com/' },
  ]);
});

/** The worker is restarted, its task taken back and placed again. */
async function loseOnceMore({ lab }: DispatchedScan): Promise<LiveWorker> {
  const successor = await lab.worker();
  await fleetLives(clone.database, [successor], seconds(40));
  await lab.recover();
  await lab.place();
  await lab.publish();
  return successor;
}
