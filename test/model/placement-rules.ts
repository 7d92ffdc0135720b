// A placement pass may choose; what it must keep and what it must not leave is judged here, from what it placed.
import {
  isAlive,
  liveTasks,
  type Model,
  type ModelAttempt,
  type ModelTask,
  tagsOf,
  unended,
} from './model.ts';
import { bounds, capacityMultiple } from './times.ts';
import { storedAttempts, storedTasks, type World } from './world.ts';

/** Takes what was placed into the model: allowed, within every bound, and nothing left that would have had room. */
export async function adoptPlacement(model: Model, world: World): Promise<void> {
  const eligible = [...model.fleet.values()].filter(
    (worker) => !worker.draining && isAlive(model, worker, bounds.aliveWithinMs),
  );
  const slots = (tag: string | null): number =>
    eligible
      .filter((worker) => tag === null || worker.tags.includes(tag))
      .reduce((sum, worker) => sum + worker.slots, 0);
  const due =
    model.scan.status === 'Running'
      ? liveTasks(model).filter((task) => task.status === 'Pending' && task.dueAt <= model.now)
      : [];
  const attempts = await storedAttempts(world.lab.database, world.scan.scan_id);
  const taskOf = new Map(
    (await storedTasks(world.lab.database, world.scan.scan_id)).map((row) => [row.attempt_id, row]),
  );
  const placed: ModelAttempt[] = [];
  for (const row of attempts.filter(({ attempt_id }) => !model.attempts.has(attempt_id))) {
    const task = due.find(({ id }) => id === row.task_id);
    if (!task || taskOf.get(row.attempt_id)?.status !== 'Published')
      throw new Error(`attempt ${row.attempt_id} is of a task that was not due`);
    expect(tagsOf[task.step]).toContain(row.tag);
    placed.push(place(model, task, row.attempt_id, row.tag));
  }
  // Where something was added no bound is passed; a fleet that shrank may be over its bound by what was there before.
  for (const attempt of placed) {
    expect(inFlight(model, { tag: attempt.tag })).toBeLessThanOrEqual(capacityMultiple * slots(attempt.tag));
    expect(inFlight(model, {})).toBeLessThanOrEqual(capacityMultiple * slots(null));
    if (attempt.task.step === 'each')
      expect(inFlight(model, { step: 'each' })).toBeLessThanOrEqual(concurrencyOf(model));
  }
  for (const task of due.filter(({ status }) => status === 'Pending'))
    expect({ task: task.step, room: hasRoom(model, task, slots) }).toEqual({ task: task.step, room: false });
}

const concurrencyOf = (model: Model): number => model.scan.revision.concurrency ?? Number.POSITIVE_INFINITY;

function place(model: Model, task: ModelTask, attemptId: string, tag: string): ModelAttempt {
  task.status = 'Published';
  task.attempt = attemptId;
  model.outbox.add(attemptId);
  const attempt: ModelAttempt = {
    id: attemptId,
    task,
    tag,
    maxRetries: model.scan.revision.retries,
    confirmedAt: null,
    startedAt: null,
    startedSequence: 0,
    delivery: null,
    holder: null,
    ended: false,
    cancelAskedAt: null,
    omitted: 0,
    digest: null,
  };
  model.attempts.set(attemptId, attempt);
  return attempt;
}

const inFlight = (model: Model, of: { tag?: string; step?: string }): number =>
  unended(model).filter(
    (attempt) =>
      (of.tag === undefined || attempt.tag === of.tag) &&
      (of.step === undefined || attempt.task.step === of.step),
  ).length;

function hasRoom(model: Model, task: ModelTask, slots: (tag: string | null) => number): boolean {
  if (task.step === 'each' && inFlight(model, { step: 'each' }) >= concurrencyOf(model)) return false;
  if (inFlight(model, {}) >= capacityMultiple * slots(null)) return false;
  return tagsOf[task.step].some(
    (tag) => slots(tag) > 0 && inFlight(model, { tag }) < capacityMultiple * slots(tag),
  );
}
