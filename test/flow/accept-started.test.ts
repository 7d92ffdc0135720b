// One delivery of an attempt runs its command; every other one is told to skip it.
import type { DeliveryId } from '#sonar/contracts/ids.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { whileLocked } from '../fixtures/lock-waits.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const dispositions = (answers: { disposition: string }[]) =>
  answers.map(({ disposition }) => disposition).toSorted();

test('Published becomes Running, with worker, incarnation, delivery and the sequence of the last pulse', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await worker.pulse();
  const deliveryId = newId<DeliveryId>();
  expect(await lab.start(attempt, worker, { deliveryId })).toMatchObject({ disposition: 'run' });
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Running', attempt_id: attempt.attempt_id }]);
  expect(
    await clone.database.rows(query`
      select worker_name, incarnation_id, delivery_id, started_pulse_sequence, started_at is not null as started from sonar.attempt`),
  ).toEqual([
    {
      worker_name: 'w1',
      incarnation_id: worker.incarnationId,
      delivery_id: deliveryId,
      started_pulse_sequence: 2,
      started: true,
    },
  ]);
});

test('the delivery that started it is told to run however often it asks; another one is told to skip', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects);
  const deliveryId = newId<DeliveryId>();
  for (let time = 0; time < 3; time += 1)
    expect(await lab.start(attempt, worker, { deliveryId })).toMatchObject({ disposition: 'run' });
  expect(await lab.start(attempt, worker)).toMatchObject({ disposition: 'skip' });
});

test('of many deliveries at once one runs', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects);
  const answers = await Promise.all(Array.from({ length: 8 }, () => lab.start(attempt, worker)));
  expect(dispositions(answers)).toEqual(['run', ...Array.from({ length: 7 }, () => 'skip')]);
});

test('a retry that overlaps the call it repeats is told to run too', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects);
  const deliveryId = newId<DeliveryId>();
  const answers = await whileLocked(
    { holder: clone.open(1), observer: clone.database },
    (tx) => tx.rows(query`select from sonar.task where task_id = ${attempt.task_id} for update`),
    2,
    () => Promise.all([1, 2].map(() => lab.start(attempt, worker, { deliveryId }))),
  );
  expect(dispositions(answers)).toEqual(['run', 'run']);
});

test('another worker that is given the message while the first one runs it skips it', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects);
  const other = await lab.worker({ name: 'w2' });
  await lab.start(attempt, worker);
  expect(await lab.start(attempt, other)).toMatchObject({ disposition: 'skip' });
});

test('a replaced incarnation starts nothing', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.worker();
  expect(await lab.start(attempt, worker)).toMatchObject({
    disposition: 'skip',
    reason: 'a newer incarnation of this worker has registered',
  });
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Published' }]);
});

test('a worker without the tag, an unknown incarnation and a borrowed name are refused', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects);
  const other = await lab.worker({ name: 'w2', tags: ['u'] });
  await expect(lab.start(attempt, other)).rejects.toMatchObject({
    code: 'forbidden',
    message: 'worker "w2" does not serve tag "t"',
  });
  await expect(lab.start(attempt, worker, { incarnationId: newId() })).rejects.toMatchObject({
    code: 'forbidden',
  });
  await expect(lab.start(attempt, worker, { worker: 'w2' })).rejects.toMatchObject({ code: 'forbidden' });
});

test('an attempt that was superseded or cancelled before its start is skipped', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await clone.database.execute(query`update sonar.task set status = 'Pending', attempt_id = null`);
  expect(await lab.start(attempt, worker)).toMatchObject({ disposition: 'skip' });
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Pending' }]);
});
