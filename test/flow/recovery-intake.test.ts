// Silence says something about a worker only while others are heard, and of most of a fleet it says nothing for a while.
import { findHold } from '#sonar/stores/recovery.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { type DispatchedScan, dispatchedScan } from '../fixtures/dispatched-scan.ts';
import type { Laboratory } from '../fixtures/laboratory.ts';
import type { LiveWorker } from '../fixtures/live-worker.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { fleetLives, minutes, seconds, timePasses } from '../fixtures/passing-time.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

async function taken(lab: Laboratory): Promise<number> {
  const result = await lab.recover();
  if (!result) throw new Error('the last pass was too short a time ago: this one would prove nothing');
  return [...result.scans.values()].reduce((sum, { tasks }) => sum + tasks, 0);
}
const crew = (lab: Laboratory, size: number): Promise<LiveWorker[]> =>
  Promise.all(
    Array.from({ length: size }, (_, index) => lab.worker({ name: `crew-${index}`, tags: ['t'], slots: 1 })),
  );
const intake = async () => {
  const [row] = await clone.database.rows<{ open_since: string; touched_at: string }>(
    query`select open_since, touched_at from sonar.pulse_intake`,
  );
  return row!;
};

test('one row is touched by accepted pulses, at most every 2 s, and opens anew after 15 s without any', async () => {
  const { worker } = await dispatchedScan(clone, objects);
  // However slow this machine is, the row was touched less than 2 s ago.
  await clone.database.execute(query`update sonar.pulse_intake set touched_at = now() + interval '1 hour'`);
  const first = await intake();
  await worker.pulse();
  expect(await intake()).toEqual(first);
  await clone.database.execute(
    query`update sonar.pulse_intake set touched_at = now() - interval '3 seconds'`,
  );
  const moved = await intake();
  await worker.pulse({ sequence: 1 });
  expect(await intake()).toEqual(moved);
  await worker.pulse();
  const touched = await intake();
  expect(touched.open_since).toBe(moved.open_since);
  expect(touched.touched_at > moved.touched_at).toBe(true);
  await timePasses(clone.database, seconds(16));
  await worker.pulse();
  const opened = await intake();
  expect(opened.open_since > touched.open_since).toBe(true);
});

/** Every worker runs a command that it lists in its pulses. */
async function atWork(scene: DispatchedScan, workers: readonly LiveWorker[]) {
  const held = new Map<LiveWorker, string[]>();
  for (const [index, worker] of workers.entries()) {
    const attempt = scene.attempts[index];
    if (!attempt) continue;
    await scene.lab.start(attempt, worker);
    held.set(worker, [attempt.attempt_id]);
  }
  return (worker: LiveWorker) => worker.pulse({ freeSlots: 0, attempts: held.get(worker) ?? [] });
}

test('an outage that is shorter than the life of a worker makes nobody look dead, in whatever turn they pulse', async () => {
  for (const outage of [14, 16, 25, 34]) {
    await clone.empty();
    const scene = await dispatchedScan(clone, objects, { lines: 2 });
    const [other] = await crew(scene.lab, 1);
    const pulse = await atWork(scene, [scene.worker, other!]);
    await fleetLives(clone.database, [scene.worker, other!], minutes(12), pulse);
    // The other pulses 9 s before the outage, and will again 9 s after it.
    await timePasses(clone.database, seconds(9));
    await pulse(scene.worker);
    await timePasses(clone.database, seconds(outage));
    expect(await taken(scene.lab)).toBe(0);
    await timePasses(clone.database, seconds(6));
    await pulse(scene.worker);
    expect(await taken(scene.lab)).toBe(0);
  }
});

test('a pass during which the database stood still judges nobody by the silence of that time', async () => {
  const scene = await dispatchedScan(clone, objects);
  const pulse = await atWork(scene, [scene.worker]);
  await fleetLives(clone.database, [scene.worker], minutes(12), pulse);
  let still = true;
  const lab = scene.lab.with({
    database: {
      ...clone.database,
      async rows<Row>(statement: Parameters<typeof clone.database.rows>[0]): Promise<Row[]> {
        if (still && statement.name === 'recovery.waiting_tags') {
          still = false;
          await timePasses(clone.database, seconds(60));
        }
        return clone.database.rows<Row>(statement);
      },
    },
  });
  expect(await taken(lab)).toBe(0);
  expect(still).toBe(false);
});

test('an api that was away for 20 min recovers nobody: neither during it nor when the pulses come again', async () => {
  const scene = await dispatchedScan(clone, objects, { lines: 3 });
  const others = await crew(scene.lab, 2);
  const workers = [scene.worker, ...others];
  const pulse = await atWork(scene, workers);
  await fleetLives(clone.database, workers, minutes(15), pulse);
  for (let minute = 0; minute < 20; minute += 1) {
    await timePasses(clone.database, minutes(1));
    expect(await taken(scene.lab)).toBe(0);
  }
  // The first of them is heard; the others look as if they had been silent for 20 min.
  await timePasses(clone.database, seconds(6));
  await pulse(workers[0]!);
  expect(await taken(scene.lab)).toBe(0);
  await timePasses(clone.database, seconds(10));
  expect(await taken(scene.lab)).toBe(0);
  await pulse(workers[0]!);
  // One that does not come back is judged once intake was open for the age floor.
  await fleetLives(clone.database, workers.slice(0, 2), minutes(9), pulse);
  expect(await taken(scene.lab)).toBe(0);
  await fleetLives(clone.database, workers.slice(0, 2), minutes(1), pulse);
  expect(await taken(scene.lab)).toBe(1);
});

describe('over half of a fleet that falls silent at once', () => {
  async function vanish(size: number, left: number) {
    const scene = await dispatchedScan(clone, objects, { lines: size });
    const { lab } = scene;
    const workers = [scene.worker, ...(await crew(lab, size - 1))];
    const pulse = await atWork(scene, workers);
    await fleetLives(clone.database, workers, minutes(11), pulse);
    const survivors = workers.slice(0, left);
    await fleetLives(clone.database, survivors, seconds(40), pulse);
    return { ...scene, workers, survivors, pulse };
  }

  test('of 9 workers is judged like any other loss', async () => {
    const { lab } = await vanish(9, 4);
    expect(await taken(lab)).toBe(5);
    expect(await findHold(clone.database)).toBeUndefined();
  });

  test('of 10 workers holds recovery for 10 min, says so, and then goes on', async () => {
    const { lab, survivors, pulse } = await vanish(10, 4);
    expect(await taken(lab)).toBe(0);
    expect(await findHold(clone.database)).toMatchObject({
      held_note: "recovery of absent workers' tasks is on hold: 6 of 10 workers fell silent at once",
    });
    await fleetLives(clone.database, survivors, minutes(9), pulse);
    expect(await taken(lab)).toBe(0);
    await fleetLives(clone.database, survivors, minutes(1), pulse);
    expect(await taken(lab)).toBe(6);
    expect(await findHold(clone.database)).toBeUndefined();
  });

  test('keeps what it had when it is heard again before the hold is over', async () => {
    const { lab, workers, survivors, pulse } = await vanish(10, 4);
    expect(await taken(lab)).toBe(0);
    await fleetLives(clone.database, survivors, minutes(9), pulse);
    await fleetLives(clone.database, workers, minutes(2), pulse);
    expect(await taken(lab)).toBe(0);
    expect(await findHold(clone.database)).toBeUndefined();
    expect(await clone.database.rows(query`select distinct status from sonar.task`)).toEqual([
      { status: 'Running' },
    ]);
  });

  test('holds no task of a worker that was restarted meanwhile', async () => {
    const { lab, survivors, pulse } = await vanish(10, 4);
    expect(await taken(lab)).toBe(0);
    const successor = await lab.worker({ name: 'crew-8', tags: ['t'], slots: 1 });
    await fleetLives(clone.database, [...survivors, successor], seconds(40), pulse);
    expect(await taken(lab)).toBe(1);
  });
});
