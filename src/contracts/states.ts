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
