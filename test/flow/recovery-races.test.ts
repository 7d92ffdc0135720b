// Recovery beside everything else that changes a task: whoever is second finds what the first has done.
import type { Result } from '#sonar/contracts/worker-api.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { type DispatchedScan, dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { whileLocked } from '../fixtures/lock-waits.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { fleetLives, seconds, timePasses } from '../fixtures/passing-time.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

/** Its worker was restarted 40 s ago. */
async function orphaned(lines = 1): Promise<DispatchedScan & { result: Result }> {
  const scene = await dispatchedScan(clone, objects, { lines });
  for (const attempt of scene.attempts) await scene.lab.start(attempt, scene.worker);
  const result = await scene.lab.result(scene.attempt, scene.worker);
  const successor = await scene.lab.worker();
  await fleetLives(clone.database, [successor], seconds(40));
  return { ...scene, result };
}
const lockTask = (taskId: string) => query`select from sonar.task where task_id = ${taskId} for update`;

test('a result that is being accepted keeps its task: recovery passes it over', async () => {
  const { lab, scan, attempt, result } = await orphaned();
  const accepted = await whileLocked(
    { holder: clone.open(1), observer: clone.open(1) },
    async (tx) => {
      await tx.rows(lockTask(attempt.task_id));
      // Whoever holds the task, recovery does not wait for it.
      expect((await lab.recover())?.scans.size).toBe(0);
    },
    1,
    () => lab.accept(attempt, result),
  );
  expect(accepted).toBe('accepted');
  await timePasses(clone.database, seconds(10));
  expect((await lab.recover())?.scans.size).toBe(0);
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Completed', recoveries: 0 }]);
});

test('a result that waits for a recovery is superseded by it', async () => {
  const { lab, scan, attempt, result } = await orphaned();
  let answer: Promise<string> | undefined;
  const committed = Promise.withResolvers<void>();
  const recovering = lab.with({
    database: {
      ...clone.database,
      transaction: (work) =>
        clone.database.transaction(async (tx) => {
          const taken = await work(tx);
          committed.resolve();
          answer = lab.accept(attempt, result);
          await waitingFor(1);
          return taken;
        }),
    },
  });
  expect((await recovering.recover())?.scans.get(scan.scan_id)).toEqual({ tasks: 1, failed: 0 });
  await committed.promise;
  expect(await answer).toBe('superseded');
  expect(await lab.tasks(scan)).toMatchObject([
    { status: 'Pending', accepted_attempt_id: null, recoveries: 1 },
  ]);
});

/** Until so many statements of this database wait for a lock. */
async function waitingFor(count: number): Promise<void> {
  for (let blocked = 0; blocked < count; ) {
    const [row] = await clone.database.rows<{ blocked: number }>(query`
      select count(*)::integer as blocked from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`);
    blocked = row?.blocked ?? 0;
  }
}

test('of a start and a recovery of the same message one wins, and the other finds it done', async () => {
  const { lab, scan, attempt, worker } = await dispatchedScan(clone, objects);
  await fleetLives(clone.database, [worker], seconds(660));
  const [started, recovered] = await Promise.all([lab.start(attempt, worker), lab.recover()]);
  const [task] = await lab.tasks(scan);
  const taken = recovered?.scans.size ?? 0;
  expect([started.disposition, task?.status, taken]).toEqual(
    started.disposition === 'run' ? ['run', 'Running', 0] : ['skip', 'Pending', 1],
  );
});

test('many reconcilers at once take back each task once; one pass serves them all', async () => {
  const { lab, scan } = await orphaned(40);
  const others = Array.from({ length: 4 }, () => lab.with({ database: clone.open(2) }));
  const passes = await Promise.all([lab, ...others].map((one) => one.recover()));
  expect(passes.filter((pass) => pass !== undefined)).toHaveLength(1);
  expect((await lab.tasks(scan)).every((task) => task.status === 'Pending' && task.recoveries === 1)).toBe(
    true,
  );
  // Nobody asks twice within 5 s.
  expect(await lab.recover()).toBeUndefined();
  await timePasses(clone.database, seconds(6));
  expect(await lab.recover()).toBeDefined();
});

test('passes without the claim, side by side, take back each task once all the same', async () => {
  const { lab, scan } = await orphaned(40);
  const unclaimed = () => {
    const database = clone.open(2);
    return lab.with({
      // As if the lease of each had run out for the others.
      database: {
        ...database,
        execute: (statement) =>
          statement.name === 'recovery.claim' ? Promise.resolve(1) : database.execute(statement),
      },
    });
  };
  const passes = await Promise.all([unclaimed(), unclaimed(), unclaimed()].map((one) => one.recover()));
  const taken = passes.map((pass) => pass?.scans.get(scan.scan_id)?.tasks ?? 0);
  expect(taken.reduce((sum, tasks) => sum + tasks, 0)).toBe(40);
  expect((await lab.tasks(scan)).map((task) => task.recoveries)).toEqual(Array.from({ length: 40 }, () => 1));
  expect(
    await clone.database.rows(
      query`select count(*) as ended from sonar.attempt where end_reason = 'recovered'`,
    ),
  ).toEqual([{ ended: 40 }]);
});

test('a pass that died with its claim is made again when the lease is over', async () => {
  const { lab } = await orphaned();
  const dying = lab.with({
    database: {
      ...clone.database,
      transaction: () => Promise.reject(new Error('the process died')),
      execute: (statement) =>
        statement.name === 'recovery.release' ? Promise.resolve(0) : clone.database.execute(statement),
    },
  });
  await expect(dying.recover()).rejects.toThrow('the process died');
  expect(await lab.recover()).toBeUndefined();
  await timePasses(clone.database, seconds(61));
  expect((await lab.recover())?.scans.size).toBe(1);
});

test('what was to be told of a recovered attempt goes; a delivery that a publisher holds is left to it', async () => {
  const { lab } = await orphaned(2);
  await clone.database.execute(query`
    insert into sonar.outbox_delivery_queue (event_id, workspace_id, bytes, claim_token, available_at)
    select event_id, workspace_id, 2, case when row_number() over () = 1 then gen_random_uuid() end, now() + interval '1 minute' from sonar.outbox_events`);
  expect((await lab.recover())?.scans.size).toBe(1);
  expect(
    await clone.database.rows(query`select claim_token is not null as held from sonar.outbox_delivery_queue`),
  ).toEqual([{ held: true }]);
  await timePasses(clone.database, seconds(120));
  await lab.publish();
  expect(await clone.database.rows(query`select event_id from sonar.outbox_delivery_queue`)).toEqual([]);
});
