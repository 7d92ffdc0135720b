// Statements that change several attempts meet: confirms and pulses hold no tasks. All take them in one order.
import type { ClaimToken, DeliveryId, ExecutorId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { newId } from '#sonar/platform/ids.ts';
import { type AttemptRow, startAttempts } from '#sonar/stores/attempts.ts';
import { markDeleted } from '#sonar/stores/deletions.ts';
import { claimDeliveries, finishDeliveries } from '#sonar/stores/outbox.ts';
import { returnParked } from '#sonar/stores/parked-tags.ts';
import { takeBack } from '#sonar/stores/recovery.ts';
import { insertResults } from '#sonar/stores/results.ts';
import { cancelTasks } from '#sonar/stores/tasks.ts';
import { endOmittedAttempts } from '#sonar/stores/workers.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { identity, openLaboratory } from '../fixtures/laboratory.ts';
import { untilBlocked } from '../fixtures/lock-waits.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

interface Scene {
  /** Against their ids, as callbacks and confirms may come. */
  attempts: AttemptRow[];
  worker: { name: string; incarnationId: AttemptRow['incarnation_id'] & string };
  token: ClaimToken;
  events: string[];
}

const statements: Record<string, (db: Database, scene: Scene) => Promise<unknown>> = {
  'starts that are committed together': (db, { attempts, worker }) =>
    startAttempts(
      db,
      attempts.map((attempt) => ({
        ...identity(attempt, worker),
        deliveryId: newId<DeliveryId>(),
        pulseSequence: 1,
      })),
    ),
  'results that are committed together': (db, { attempts }) =>
    insertResults(
      db,
      attempts.map((attempt) => ({
        attemptId: attempt.attempt_id,
        workspaceId: 'default',
        taskId: attempt.task_id,
        digest: 'd',
        outcome: 'completed',
        body: {},
      })),
    ),
  confirms: (db, { token, events }) => finishDeliveries(db, token, events, true),
  'messages of a parked tag that come back': (db, { token, events }) => returnParked(db, token, events),
  'a cancel': (db, { attempts }) =>
    cancelTasks(
      db,
      attempts.map(({ task_id, attempt_id }) => ({ task_id, attempt_id, status: 'Published' })),
      { code: 'scan_cancelled', message: 'enough' },
    ),
  'a recovery': (db, { attempts }) =>
    takeBack(
      db,
      'recovered_too_often',
      attempts.map((attempt) => ({
        taskId: attempt.task_id,
        attemptId: attempt.attempt_id,
        rule: 'undelivered' as never,
        failure: null,
      })),
    ),
  'a pulse that omits what was cancelled': (db, { worker }) =>
    endOmittedAttempts(db, { incarnationId: worker.incarnationId, sequence: 9, attempts: [] } as never),
  'a deletion': (db, { attempts }) => markDeleted(db, attempts[0]!.scan_id),
};

test.each(Object.keys(statements))('%s: attempts are locked in order of their ids', async (name) => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: ['1', '2', '3', '4', '5', '6'] } });
  await lab.plan(scan);
  await lab.place();
  const attempts = await lab.published(scan);
  const inOrder = attempts.toSorted((a, b) => (a.attempt_id < b.attempt_id ? -1 : 1));
  // Written anew from the last to the first, so that they also lie in the table against their order.
  for (const { attempt_id } of inOrder.toReversed())
    await clone.database.execute(query`
      update sonar.attempt set cancel_requested_at = case when ${name.startsWith('a pulse')}::boolean then now() end,
             incarnation_id = ${worker.incarnationId}, started_pulse_sequence = 1
      where attempt_id = ${attempt_id}`);
  // And the messages of the last are the first.
  const events = await clone.database.rows<{ event_id: string }>(
    query`select event_id from sonar.outbox_events order by event_id`,
  );
  for (const [index, { event_id }] of events.entries())
    await clone.database.execute(query`
      update sonar.outbox_events set attempt_id = ${inOrder.at(-1 - index)!.attempt_id} where event_id = ${event_id}`);
  const token = newId<ClaimToken>();
  const claim = { token, executorId: newId<ExecutorId>(), leaseMs: 30_000, limit: 10, maxBytes: 1e9 };
  const claimed = (await claimDeliveries(lab.database, claim)).map((row) => row.event_id);
  expect(claimed).toHaveLength(6);
  const scene = { attempts: inOrder.toReversed(), worker, token, events: claimed };
  const observer = clone.open(1);
  let changed: Promise<unknown> = Promise.resolve();
  let free: unknown;
  await clone.open(1).transaction(async (tx) => {
    await tx.rows(query`select from sonar.attempt where attempt_id = ${inOrder[3]!.attempt_id} for update`);
    changed = statements[name]!(clone.open(1), scene);
    changed.catch(() => undefined);
    await untilBlocked(observer, 1);
    free = await observer.rows(
      query`select attempt_id from sonar.attempt order by attempt_id for update skip locked`,
    );
  });
  await changed;
  expect(free).toEqual(inOrder.slice(4).map(({ attempt_id }) => ({ attempt_id })));
});
