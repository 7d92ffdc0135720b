// What each state must hold is enforced by PostgreSQL, and every statement that moves a task is guarded as the table of
// `domain/task-states.ts` says.
import { scanStatuses, type TaskStatus, taskStatuses } from '#sonar/contracts/states.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { isTerminal, nextTaskStatus, statesBefore, type TaskEvent } from '#sonar/domain/task-states.ts';
import { newId } from '#sonar/platform/ids.ts';
import { releaseAttempt, startAttempts } from '#sonar/stores/attempts.ts';
import { finishFinalization, poisonFinalization } from '#sonar/stores/finalizations.ts';
import { dispatchTasks, refuseTasks } from '#sonar/stores/placement.ts';
import { repairFinalizations } from '#sonar/stores/poison.ts';
import { finishTasks, scheduleRetries } from '#sonar/stores/results.ts';
import { retryTasks } from '#sonar/stores/retries.ts';
import { cancelTasks, lockOpenTasks } from '#sonar/stores/tasks.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { factsOf, insertTaskInState, type TaskFacts } from '../fixtures/task-in-state.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const aScan = () => openLaboratory(clone, objects).scan(oneStep);

/** Each line is one thing that a state must or may not hold. */
const mayStand = (facts: TaskFacts): boolean =>
  (!facts.noWork || facts.status === 'Completed') &&
  facts.hasAttempt === (facts.status === 'Published' || facts.status === 'Running') &&
  (facts.status !== 'Published' || facts.published) &&
  (facts.status !== 'Running' || facts.started) &&
  facts.finished === isTerminal(facts.status) &&
  (facts.status !== 'Failed' || facts.failed) &&
  (!facts.failed || facts.status === 'Failed' || facts.status === 'Cancelled') &&
  (!facts.accepted || facts.status === 'Completed' || facts.status === 'Failed') &&
  (facts.status !== 'Completed' || facts.accepted !== facts.noWork) &&
  (facts.finalized || facts.accepted) &&
  (!facts.planDue || (facts.status === 'Completed' && facts.finalized));

const flags = [
  'noWork',
  'hasAttempt',
  'published',
  'started',
  'finished',
  'accepted',
  'failed',
  'finalized',
  'planDue',
] as const;

/** One statement for all: a round trip for each of the 3,072 combinations would take a minute. */
const takesTask = `
  create function sonar.takes_task(scan uuid, f jsonb) returns boolean language plpgsql as $$
  begin
    insert into sonar.task (task_id, workspace_id, scan_id, step, parent_task_id, definition_revision, status, no_work, attempt_id, tag,
      published_at, started_at, finished_at, accepted_attempt_id, accepted_digest, accepted_sequence, failure_code, finalized, plan_due)
    select gen_random_uuid(), 'default', scan, 'only', gen_random_uuid(), 1, f->>'status', (f->>'noWork')::boolean,
      case when (f->>'hasAttempt')::boolean then gen_random_uuid() end, case when (f->>'published')::boolean then 't' end,
      case when (f->>'published')::boolean then now() end, case when (f->>'started')::boolean then now() end,
      case when (f->>'finished')::boolean then now() end, case when (f->>'accepted')::boolean then gen_random_uuid() end,
      case when (f->>'accepted')::boolean then 'digest' end, case when (f->>'accepted')::boolean then 1 end,
      case when (f->>'failed')::boolean then 'x' end, (f->>'finalized')::boolean, (f->>'planDue')::boolean;
    return true;
  exception when check_violation then return false;
  end $$`;
beforeAll(() => clone.database.script(takesTask));

test.each(taskStatuses)(
  '%s: each combination that the state forbids is refused, and each other is taken',
  async (status) => {
    const scan = await aScan();
    const combinations = Array.from({ length: 2 ** flags.length }, (_, bits) => ({
      status,
      ...Object.fromEntries(flags.map((flag, index) => [flag, ((bits >> index) & 1) === 1])),
    })) as TaskFacts[];
    const answers = await clone.database.rows<{ facts: TaskFacts; taken: boolean }>(query`
      select facts, sonar.takes_task(${scan.scan_id}, facts) as taken from jsonb_array_elements(${JSON.stringify(combinations)}::jsonb) as facts`);
    expect(answers.filter(({ facts, taken }) => taken !== mayStand(facts))).toEqual([]);
    expect(answers.filter(({ taken }) => taken).length).toBeGreaterThan(0);
  },
);

test('an unknown state is refused', async () => {
  const scan = await aScan();
  const facts = { ...factsOf('Pending'), status: 'Waiting' as TaskStatus };
  await expect(insertTaskInState(clone.database, scan, facts)).rejects.toMatchObject({ code: '23514' });
});

type Placed = Awaited<ReturnType<typeof insertTaskInState>>;
type Scan = Awaited<ReturnType<typeof aScan>>;

const finish =
  (status: 'Completed' | 'Failed') =>
  ({ taskId, attemptId }: Placed) =>
    finishTasks(clone.database, [
      {
        taskId,
        attemptId,
        workspaceId: 'default',
        status,
        digest: 'digest',
        outcome: 'completed',
        exitCode: 0,
        failureCode: status === 'Failed' ? 'x' : null,
        failureMessage: status === 'Failed' ? 'x' : null,
        finalized: true,
      },
    ]);

const claimed = { token: newId<never>(), executorId: newId<never>() };

/** What the program does to a task at each event; recovery is not there yet. */
const moves: Partial<Record<TaskEvent, (task: Placed, scan: Scan) => Promise<unknown>>> = {
  placed: ({ taskId }, scan) =>
    dispatchTasks(
      clone.database,
      { scanId: scan.scan_id, workspaceId: 'default', step: 'only', definitionRevision: 1, keyId: 'new' },
      [{ taskId, attemptId: newId(), eventId: newId(), tag: 't', number: 2, bytes: 2, payload: {} }],
    ),
  started: ({ attemptId }) =>
    startAttempts(clone.database, [
      {
        v: 1,
        attemptId,
        dispatchKey: '',
        worker: 'w',
        incarnationId: newId(),
        deliveryId: newId(),
        pulseSequence: 0,
      },
    ]).catch((error: unknown) => {
      // The worker is invented, so the row of the attempt refuses it once the task has let it pass.
      expect(error).toMatchObject({ code: '23503' });
      return clone.database.execute(query`
        update sonar.task set status = 'Running', started_at = clock_timestamp() where attempt_id = ${attemptId} and status = 'Published'`);
    }),
  completed: finish('Completed'),
  failed: finish('Failed'),
  retried: ({ taskId, attemptId }) =>
    scheduleRetries(clone.database, [
      { taskId, attemptId, workspaceId: 'default', delayMs: 0, exitCode: 1, outcome: 'failed', spent: 1 },
    ]),
  released: ({ attemptId }) =>
    releaseAttempt(clone.database, attemptId, {
      reason: 'spot',
      maxReleases: 9,
      failureCode: 'x',
      delayMs: 0,
    }),
  refused: ({ taskId }) => refuseTasks(clone.database, 'item_refused', [{ taskId, reason: 'x' }]),
  cancelled: async (_task, scan) =>
    cancelTasks(clone.database, await lockOpenTasks(clone.database, scan.scan_id, null, 10), {
      code: 'scan_cancelled',
      message: 'x',
    }),
  retry_asked: ({ taskId }, scan) => retryTasks(clone.database, scan.scan_id, 'only', taskId, 1),
  async poisoned({ taskId, attemptId }, scan) {
    const [finalizationId, token] = [newId<never>(), newId<never>()];
    await clone.database.execute(query`
      insert into sonar.finalization (finalization_id, workspace_id, scan_id, task_id, attempt_id, digest, size, status, claim_token)
      values (${finalizationId}, 'default', ${scan.scan_id}, ${taskId}, ${attemptId}, 'digest', 1, 'due', ${token})`);
    await poisonFinalization(clone.database, token, {
      finalizationId,
      error: 'x',
      sample: null,
      failureCode: 'finalization_poisoned',
    });
  },
  async repaired({ taskId, attemptId }, scan) {
    const finalizationId = newId<never>();
    const failureCode = 'finalization_poisoned';
    await clone.database.execute(query`
      update sonar.task set failure_code = ${failureCode} where task_id = ${taskId} and status = 'Failed'`);
    await clone.database.execute(query`
      insert into sonar.finalization (finalization_id, workspace_id, scan_id, task_id, attempt_id, digest, size, status, finished_at)
      values (${finalizationId}, 'default', ${scan.scan_id}, ${taskId}, ${attemptId}, 'digest', 1, 'poisoned', now())`);
    await repairFinalizations(clone.database, scan.scan_id, finalizationId, failureCode);
    await clone.database.execute(query`
      update sonar.finalization set claim_token = ${claimed.token}, claimed_by = ${claimed.executorId}, claim_expires_at = now() + interval '1 hour'
      where status = 'due'`);
    const read = { finalizationId, records: 1, badRecords: 0, warnings: [], failureCode };
    await finishFinalization(clone.database, claimed, read);
  },
};

/** Legal in the table, and done by another statement than the one above. */
const elsewhere = new Set(['Pending completed', 'Published failed']);

const cases = (Object.keys(moves) as TaskEvent[]).flatMap((event) =>
  taskStatuses.map((status) => [status, event] as const),
);

test.each(cases)('%s, %s: the state after it is the one of the table', async (status, event) => {
  const scan = await aScan();
  const task = await insertTaskInState(clone.database, scan, factsOf(status));
  await moves[event]?.(task, scan);
  const [after] = await clone.database.rows<{ status: TaskStatus }>(query`select status from sonar.task`);
  const legal = statesBefore(event).includes(status) && !elsewhere.has(`${status} ${event}`);
  expect(after?.status).toBe(legal ? nextTaskStatus(status, event) : status);
});

test.each(scanStatuses)('a scan that is %s has an end exactly if it is over', async (status) => {
  const scan = await aScan();
  const change = (finished: boolean) =>
    clone.database.execute(query`
      update sonar.scan set status = ${status}, finished_at = case when ${finished}::boolean then now() end where scan_id = ${scan.scan_id}`);
  const over = !isScanOpen(status);
  await expect(change(!over)).rejects.toMatchObject({ code: '23514' });
  expect(await change(over)).toBe(1);
});

test.each([
  ['an attempt that has ended without a reason', query`update sonar.attempt set ended_at = now()`],
  ['an attempt with a reason that has not ended', query`update sonar.attempt set end_reason = 'result'`],
  ['a reason that is none', query`update sonar.attempt set ended_at = now(), end_reason = 'boredom'`],
  ['a step in a state that is none', query`update sonar.scan_step set state = 'closed'`],
  ['a second row of the placement', query`insert into sonar.placement (singleton) values (false)`],
  ['a scan in a state that is none', query`update sonar.scan set status = 'Done'`],
])('%s is refused', async (_what, change) => {
  const scan = await aScan();
  await insertTaskInState(clone.database, scan, factsOf('Published'));
  await expect(clone.database.execute(change)).rejects.toMatchObject({ code: '23514' });
});
