// Pulses count by their sequence; the answer says what of a worker's hands is to end.
import type { AttemptId } from '#sonar/contracts/ids.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const kept = async () => {
  const [row] = await clone.database.rows<{
    pulse_sequence: number;
    free_slots: number;
    draining: boolean;
    tags: string[];
  }>(
    query`select pulse_sequence, free_slots, draining, tags from sonar.worker_incarnation where replaced_at is null`,
  );
  return row;
};

test('a newer pulse is kept; an older or repeated one is answered and changes nothing', async () => {
  const worker = await openLaboratory(clone, objects).worker();
  await worker.pulse({ sequence: 5, freeSlots: 3 });
  const answer = { cancel: [], superseded: [], replaced: false, serverTime: expect.any(String) };
  expect(await worker.pulse({ sequence: 5, freeSlots: 9 })).toEqual(answer);
  expect(await worker.pulse({ sequence: 4, freeSlots: 9, draining: true })).toEqual(answer);
  expect(await kept()).toEqual({ pulse_sequence: 5, free_slots: 3, draining: false, tags: ['t'] });
});

test('pulses that arrive in any order leave what the newest said', async () => {
  const worker = await openLaboratory(clone, objects).worker();
  await Promise.all([7, 3, 9, 5].map((sequence) => worker.pulse({ sequence, freeSlots: sequence })));
  expect(await kept()).toMatchObject({ pulse_sequence: 9, free_slots: 9 });
});

test('a worker whose name has registered anew is told that it was replaced', async () => {
  const lab = openLaboratory(clone, objects);
  const older = await lab.worker();
  const newer = await lab.worker();
  expect(await older.pulse({ sequence: 99 })).toMatchObject({ replaced: true });
  expect(await newer.pulse()).toMatchObject({ replaced: false });
});

test('an attempt that was cancelled is asked to end, again and again, until a pulse omits it', async () => {
  const { lab, worker, scan, attempts } = await dispatchedScan(clone, objects, { lines: 2 });
  const hand = attempts.map((attempt) => attempt.attempt_id);
  for (const attempt of attempts) await lab.start(attempt, worker);
  expect(await worker.pulse({ attempts: hand })).toMatchObject({ cancel: [], superseded: [] });
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  expect((await worker.pulse({ attempts: hand })).cancel.toSorted()).toEqual(hand.toSorted());
  expect((await worker.pulse({ attempts: hand })).cancel.toSorted()).toEqual(hand.toSorted());
  expect(await lab.settle(scan)).toBe('Cancelling');
  expect((await worker.pulse({ attempts: hand.slice(1) })).cancel).toEqual(hand.slice(1));
  expect(await lab.settle(scan)).toBe('Cancelling');
  await worker.pulse({ attempts: [] });
  expect(await clone.database.rows(query`select distinct end_reason from sonar.attempt`)).toEqual([
    { end_reason: 'cancelled' },
  ]);
  expect(await lab.settle(scan)).toBe('Cancelled');
});

test('a pulse from before the start says nothing about the attempt', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker, { pulseSequence: 5 });
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  const ended = () => clone.database.rows(query`select ended_at is not null as ended from sonar.attempt`);
  await worker.pulse({ sequence: 5, attempts: [] });
  expect(await ended()).toEqual([{ ended: false }]);
  await worker.pulse({ sequence: 6, attempts: [] });
  expect(await ended()).toEqual([{ ended: true }]);
});

test('an old pulse that omits an attempt does not end it', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker);
  await cancelScan(clone.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  await worker.pulse({ sequence: 9, attempts: [attempt.attempt_id] });
  await worker.pulse({ sequence: 8, attempts: [] });
  expect(await clone.database.rows(query`select ended_at from sonar.attempt`)).toEqual([{ ended_at: null }]);
});

test('an attempt in hand that is no longer current is told to be superseded; one that was accepted is not', async () => {
  const { lab, worker, attempts } = await dispatchedScan(clone, objects, { lines: 2 });
  const [released, done] = attempts;
  await lab.start(released!, worker);
  await lab.release(released!, worker);
  await lab.run(done!, worker);
  const unknown = newId<AttemptId>();
  const hand = [released!.attempt_id, done!.attempt_id, unknown];
  expect(await worker.pulse({ attempts: hand })).toMatchObject({
    cancel: [],
    superseded: [released!.attempt_id],
  });
});
