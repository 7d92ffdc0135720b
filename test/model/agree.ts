// After each command the database must be what the model says, in every column that a rule decides.
import { type Model, type ModelTask } from './model.ts';
import type { Wanted } from './planning-rules.ts';
import {
  observedHosts,
  type StoredTask,
  storedAttempts,
  storedScan,
  storedTasks,
  type World,
} from './world.ts';

/** Takes the tasks that planning made into the model; those it wanted, no other and none missing. */
export async function adoptTasks(model: Model, world: World, wanted: readonly Wanted[]): Promise<void> {
  const rows = await storedTasks(world.lab.database, world.scan.scan_id);
  const made = rows.filter((row) => !model.tasks.has(row.task_id));
  expect(made.map(identityOf).toSorted()).toEqual(wanted.map(nameOf).toSorted());
  for (const row of made) model.tasks.set(row.task_id, newTask(row));
}

const nameOf = ({ step, parent, ordinal }: Wanted): string => `${step}/${parent ?? ''}/${ordinal ?? ''}`;
const identityOf = (row: StoredTask): string =>
  `${row.step}/${row.parent_task_id ?? ''}/${row.item_ordinal ?? ''}`;

const newTask = (row: StoredTask): ModelTask => ({
  id: row.task_id,
  step: row.step as ModelTask['step'],
  parent: row.parent_task_id,
  ordinal: row.item_ordinal,
  status: 'Pending',
  attempt: null,
  retries: 0,
  releases: 0,
  recoveries: 0,
  dueAt: 0,
  finalized: true,
  planDue: false,
  superseded: false,
  failure: null,
  rows: 'none',
  accepted: null,
});

export async function expectAgreement(model: Model, world: World): Promise<void> {
  const { database } = world.lab;
  const scanId = world.scan.scan_id;
  const tasks = await storedTasks(database, scanId);
  expect(Object.fromEntries(tasks.map((row) => [row.task_id, taskSeen(row)]))).toEqual(
    Object.fromEntries([...model.tasks.values()].map((task) => [task.id, taskSaid(task)])),
  );
  const attempts = await storedAttempts(database, scanId);
  expect(
    Object.fromEntries(
      attempts.map((row) => [
        row.attempt_id,
        {
          task: row.task_id,
          worker: row.worker_name,
          confirmed: row.confirmed,
          ended: row.ended,
          cancel: row.cancel_asked,
        },
      ]),
    ),
  ).toEqual(
    Object.fromEntries(
      [...model.attempts.values()].map((attempt) => [
        attempt.id,
        {
          task: attempt.task.id,
          worker: attempt.holder?.worker.name ?? null,
          confirmed: attempt.confirmedAt !== null,
          ended: attempt.ended,
          cancel: attempt.cancelAskedAt !== null,
        },
      ]),
    ),
  );
  expect(await storedScan(database, scanId)).toEqual({
    status: model.scan.status,
    generation: model.scan.generation,
  });
  expect(await observedHosts(database, scanId)).toEqual([...model.effects].map(hostOf).toSorted());
}

/** What a command finds: a name of its own for each attempt. */
export const hostOf = (attemptId: string): string => `a${attemptId}.example.com`;

const taskSeen = (row: StoredTask) => ({
  step: row.step,
  status: row.status,
  attempt: row.attempt_id,
  retries: row.retries,
  releases: row.releases,
  recoveries: row.recoveries,
  finalized: row.finalized,
  planDue: row.plan_due,
  superseded: row.superseded,
  failure: row.failure_code,
});

const taskSaid = (task: ModelTask) => ({
  step: task.step,
  status: task.status,
  attempt: task.attempt,
  retries: task.retries,
  releases: task.releases,
  recoveries: task.recoveries,
  finalized: task.finalized,
  planDue: task.planDue,
  superseded: task.superseded,
  failure: task.failure,
});
