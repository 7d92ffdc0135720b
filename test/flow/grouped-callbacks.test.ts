// Callbacks that arrive together are committed together, and none of them feels it.
import type { Result } from '#sonar/contracts/worker-api.ts';
import { acceptResults, type GivenResult } from '#sonar/flow/accept-result.ts';
import { startTasks } from '#sonar/flow/accept-started.ts';
import { newId } from '#sonar/platform/ids.ts';
import { calledAttempt } from '../fixtures/called-attempt.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { type DispatchedScan, dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { identity, resultOf, stepOf } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { credentialOf } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

/** As many started attempts as lines, with a result each. */
async function startedScan(lines: number, changes: (index: number) => Partial<Result> = () => ({})) {
  const dispatched = await dispatchedScan(clone, objects, { lines });
  const { lab, attempts, worker } = dispatched;
  for (const attempt of attempts) await lab.start(attempt, worker);
  const members = await Promise.all(
    attempts.map(
      async (attempt, index): Promise<GivenResult> => ({
        attempt,
        step: await stepOf(lab.database, attempt),
        result: resultOf(attempt, worker, changes(index)),
      }),
    ),
  );
  return { ...dispatched, members };
}

const statuses = async ({ lab, scan }: DispatchedScan) => (await lab.tasks(scan)).map(({ status }) => status);

test('each member is decided by its own task: accepted, failed, duplicate and conflict in one transaction', async () => {
  const work = await startedScan(4, (index) => (index === 1 ? { outcome: 'failed', exitCode: 1 } : {}));
  const { lab, members, worker } = work;
  const [first, second, third, fourth] = members as [GivenResult, GivenResult, GivenResult, GivenResult];
  await lab.accept(third.attempt, third.result);
  await lab.accept(fourth.attempt, fourth.result);
  const other = { ...fourth, result: resultOf(fourth.attempt, worker, { durationMs: 77, exitCode: 9 }) };
  expect(await acceptResults(lab, [first, second, third, other])).toEqual([
    'accepted',
    'accepted',
    'duplicate',
    'conflict',
  ]);
  expect(await statuses(work)).toEqual(['Completed', 'Failed', 'Completed', 'Completed']);
  const [sequences] = await clone.database.rows(
    query`select count(distinct accepted_sequence)::integer as distinct from sonar.task`,
  );
  expect(sequences).toEqual({ distinct: 4 });
});

test('a member whose task somebody holds is passed over, and the others do not wait for it', async () => {
  const work = await startedScan(3);
  const { lab, members } = work;
  const dispositions = await clone.open(1).transaction(async (tx) => {
    await tx.rows(query`select from sonar.task where task_id = ${members[1]?.attempt.task_id} for update`);
    return acceptResults(lab, members);
  });
  expect(dispositions).toEqual(['accepted', undefined, 'accepted']);
  expect(await statuses(work)).toEqual(['Completed', 'Running', 'Completed']);
});

test('a member that is not current is passed over, so that it can end its attempt alone', async () => {
  const { lab, members, worker, attempts } = await startedScan(2);
  await lab.release(attempts[0]!, worker);
  expect(await acceptResults(lab, members)).toEqual([undefined, 'accepted']);
});

test('a fault in the middle accepts nothing of the group', async () => {
  const work = await startedScan(3);
  const crashing = faultyDatabase(clone.database, (name) => name === 'result.finish_tasks');
  await expect(acceptResults({ ...work.lab, database: crashing }, work.members)).rejects.toThrow('injected');
  expect(await statuses(work)).toEqual(['Running', 'Running', 'Running']);
  expect(await clone.database.rows(query`select from sonar.result`)).toEqual([]);
});

test('groups of the same tasks in opposite orders, from several processes, end without a deadlock', async () => {
  const work = await startedScan(24);
  const { lab, members } = work;
  const databases = Array.from({ length: 4 }, () => clone.open(1));
  const outcomes = await Promise.all(
    databases.map((database, index) =>
      acceptResults({ ...lab, database }, index % 2 === 0 ? members : members.toReversed()),
    ),
  );
  const accepted = outcomes.flat().filter((outcome) => outcome === 'accepted');
  expect(accepted).toHaveLength(members.length);
  expect(new Set(await statuses(work))).toEqual(new Set(['Completed']));
});

test('of attempts that start together each is started once; one that is over is passed over', async () => {
  const work = await dispatchedScan(clone, objects, { lines: 3 });
  const { lab, attempts, worker } = work;
  await lab.start(attempts[1]!, worker);
  const members = attempts.map((attempt) => ({
    taskId: attempt.task_id,
    started: { ...identity(attempt, worker), deliveryId: newId<never>(), pulseSequence: 7 },
  }));
  expect(await startTasks(clone.database, members)).toEqual([true, undefined, true]);
  expect(await statuses(work)).toEqual(['Running', 'Running', 'Running']);
  expect(
    await clone.database.rows(
      query`select started_pulse_sequence as sequence from sonar.attempt order by attempt_id`,
    ),
  ).toEqual([{ sequence: 7 }, { sequence: worker.sequence }, { sequence: 7 }]);
});

test('by the api: forged and wrong results among many cost the others nothing', async () => {
  await using work = await calledAttempt(clone, objects, 24);
  const { api, attempts, worker, lab } = work;
  for (const attempt of attempts) await lab.start(attempt, worker);
  const answers = await Promise.all(
    attempts.map((attempt, index) => {
      const honest = resultOf(attempt, worker);
      // A third of them: a digest of something else, a signature of nobody, or a body of another worker.
      const [body, secret] =
        index % 9 === 0
          ? [{ ...honest, exitCode: 5 }, credentialOf(attempt.attempt_id)]
          : index % 9 === 1
            ? [honest, credentialOf(newId())]
            : index % 9 === 2
              ? [{ ...honest, worker: 'w9' }, credentialOf(attempt.attempt_id)]
              : [honest, credentialOf(attempt.attempt_id)];
      return api.send(`/v1/attempts/${attempt.attempt_id}/result`, JSON.stringify(body), { secret });
    }),
  );
  const expected = [422, 401, 403, 200, 200, 200, 200, 200, 200];
  expect(answers.map(({ status }) => status)).toEqual(answers.map((_, index) => expected[index % 9]));
  const byOrder = new Map((await lab.tasks(work.scan)).map((task) => [task.task_id, task.status]));
  expect(attempts.map(({ task_id }) => byOrder.get(task_id))).toEqual(
    answers.map(({ status }) => (status === 200 ? 'Completed' : 'Running')),
  );
});

test('by the api: copies of one result that arrive together are accepted once', async () => {
  await using work = await calledAttempt(clone, objects);
  await work.start();
  const answers = await Promise.all(Array.from({ length: 12 }, () => work.result()));
  const dispositions = answers.map(({ body }) => body.disposition as string).toSorted();
  expect(dispositions).toEqual(['accepted', ...Array.from({ length: 11 }, () => 'duplicate')]);
});
