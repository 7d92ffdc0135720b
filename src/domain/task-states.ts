// The legal transitions of a task, in one table. SQL guards each by state and attempt; CHECK constraints
// in migrations/0003 mirror what each state must hold.
import { type TaskStatus, taskStatuses } from '#sonar/contracts/states.ts';

export const taskEvents = [
  'placed',
  'started',
  'completed',
  'failed',
  'retried',
  'recovered',
  'released',
  'refused',
  'cancelled',
  'poisoned',
  'repaired',
  'retry_asked',
] as const;
export type TaskEvent = (typeof taskEvents)[number];

const transitions: Record<TaskStatus, Partial<Record<TaskEvent, TaskStatus>>> = {
  // `completed` from Pending is a no-work outcome: nothing is dispatched for it.
  Pending: { placed: 'Published', completed: 'Completed', refused: 'Failed', cancelled: 'Cancelled' },
  Published: {
    started: 'Running',
    recovered: 'Pending',
    released: 'Pending',
    failed: 'Failed',
    cancelled: 'Cancelled',
  },
  Running: {
    completed: 'Completed',
    failed: 'Failed',
    retried: 'Pending',
    recovered: 'Pending',
    released: 'Pending',
    cancelled: 'Cancelled',
  },
  Completed: { poisoned: 'Failed' },
  Failed: { repaired: 'Completed', retry_asked: 'Pending' },
  Cancelled: { retry_asked: 'Pending' },
};

/** The state after an event, or undefined where the event is not legal. */
export function nextTaskStatus(status: TaskStatus, event: TaskEvent): TaskStatus | undefined {
  return transitions[status][event];
}

/** All states from which an event is legal: what the SQL of that event must be guarded by. */
export function statesBefore(event: TaskEvent): TaskStatus[] {
  return taskStatuses.filter((status) => transitions[status][event] !== undefined);
}

export const isTerminal = (status: TaskStatus): boolean =>
  status === 'Completed' || status === 'Failed' || status === 'Cancelled';
