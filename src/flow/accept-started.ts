// Before a command runs its worker asks: Published → Running by compare-and-set, or skip.
import type { Step } from '#sonar/contracts/definition.ts';
import type { TaskId } from '#sonar/contracts/ids.ts';
import type { Started, StartedAnswer } from '#sonar/contracts/worker-api.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { passedOverMs } from '#sonar/domain/result-decision.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import type { MasterKeys } from '#sonar/platform/signing.ts';
import { type AttemptRow, deliveryRuns, lockFreeTasks, startAttempts } from '#sonar/stores/attempts.ts';
import { passOverAttempt } from '#sonar/stores/missing-programs.ts';
import { findIncarnation } from '#sonar/stores/workers.ts';
import { openSecrets } from './keep-secrets.ts';

/** Tasks and what is said of them; the identity of each was verified. */
export interface GivenStart {
  taskId: TaskId;
  started: Started;
}

/** Whether the delivery's command runs: the transition is made by this call or was made by the same delivery. */
export async function startTask(db: Db, { started }: GivenStart): Promise<boolean> {
  return (await startAttempts(db, [started])).has(started.attemptId) || (await deliveryRuns(db, started));
}

/**
 * The same of several attempts in one transaction, locks in order of the tasks and none waited for. Undefined stands
 * for one that has to go alone: somebody holds its task, or it is not to be started any more.
 */
export async function startTasks(
  database: Database,
  members: readonly GivenStart[],
): Promise<(true | undefined)[]> {
  const first = await database.transaction(async (tx) => {
    const free = await lockFreeTasks(
      tx,
      members.map(({ taskId }) => taskId),
    );
    return startAttempts(
      tx,
      members.filter(({ taskId }) => free.has(taskId)).map(({ started }) => started),
    );
  });
  return members.map(({ started }) => (first.has(started.attemptId) ? true : undefined));
}

/**
 * The delivery that made the transition is told `run`, with the command's secrets, however often it asks; any
 * other is told `skip`.
 * @throws SonarError `forbidden` where the worker is not registered under that incarnation or lacks the tag.
 */
export async function acceptStarted(
  parts: { database: Database; keys: MasterKeys; start: (given: GivenStart) => Promise<boolean> },
  attempt: AttemptRow,
  step: Pick<Step, 'secrets'>,
  started: Started,
): Promise<StartedAnswer> {
  const { database } = parts;
  const serverTime = new Date().toISOString();
  const incarnation = await findIncarnation(database, started.incarnationId);
  if (incarnation?.worker_name !== started.worker || incarnation.workspace_id !== attempt.workspace_id)
    throw new SonarError(
      'forbidden',
      `worker "${started.worker}" is not registered as incarnation ${started.incarnationId}`,
    );
  if (incarnation.replaced)
    return { disposition: 'skip', reason: 'a newer incarnation of this worker has registered', serverTime };
  if (!incarnation.tags.includes(attempt.tag))
    throw new SonarError('forbidden', `worker "${started.worker}" does not serve tag "${attempt.tag}"`);
  const { attemptId, incarnationId } = started;
  if (incarnation.lacking && (await passOverAttempt(database, attemptId, incarnationId, passedOverMs)))
    return { disposition: 'skip', reason: 'this worker has not the program of the step', serverTime };
  // Before the task is Running: what does not open must not hold it there.
  const secrets = await openSecrets(parts, attempt.workspace_id, step);
  if (await parts.start({ taskId: attempt.task_id, started }))
    return { disposition: 'run', secrets, serverTime };
  return { disposition: 'skip', reason: 'the attempt is no longer to be started', serverTime };
}
