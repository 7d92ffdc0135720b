// The states that people and other processes see. Legal transitions are in `domain/task-states.ts`
// and `domain/scan-states.ts`; CHECK constraints mirror them.

export const taskStatuses = ['Pending', 'Published', 'Running', 'Completed', 'Failed', 'Cancelled'] as const;
export type TaskStatus = (typeof taskStatuses)[number];

export const scanStatuses = [
  'Running',
  'Paused',
  'Cancelling',
  'Completed',
  'CompletedWithErrors',
  'Failed',
  'Cancelled',
] as const;
export type ScanStatus = (typeof scanStatuses)[number];

/** What a worker says its command came to. */
export const outcomes = ['completed', 'failed', 'timed_out', 'cancelled', 'not_started'] as const;
export type Outcome = (typeof outcomes)[number];

export const stepStates = ['open', 'settled', 'blocked'] as const;
export type StepState = (typeof stepStates)[number];

/** Why a task was taken back from an attempt. */
export const recoveryRules = [
  /** Its message lay unread while a worker of its tag had free slots. */
  'not_started',
  /** No live worker has its tag. */
  'no_worker',
  'worker_absent',
  /** The worker was restarted, or another machine took its name. */
  'worker_replaced',
  /** Its worker lives and no longer knows of it. */
  'not_listed',
  /** The broker refuses the queue of its tag. */
  'tag_parked',
  /** The message expired in its queue, or a worker refused it. */
  'undelivered',
] as const;
export type RecoveryRule = (typeof recoveryRules)[number];
