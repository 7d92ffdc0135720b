// The legal transitions of a scan, and the state in which a settled one ends.
import type { ScanStatus } from '#sonar/contracts/states.ts';

export type ScanEvent = 'pause' | 'resume' | 'cancel' | 'settle' | 'fail' | 'reopen' | 'repair';

const transitions: Record<ScanStatus, Partial<Record<ScanEvent, ScanStatus | 'by outcome'>>> = {
  Running: {
    repair: 'Running',
    pause: 'Paused',
    cancel: 'Cancelling',
    settle: 'by outcome',
    fail: 'Cancelling',
  },
  Paused: { repair: 'Paused', resume: 'Running', cancel: 'Cancelling', fail: 'Cancelling' },
  // Cancelled where somebody asked for it, Failed where a fault did.
  Cancelling: { settle: 'by outcome' },
  Completed: { reopen: 'Running', repair: 'Running' },
  CompletedWithErrors: { reopen: 'Running', repair: 'Running' },
  // What was accepted is read and nothing else begins: it ends as it had.
  Failed: { reopen: 'Running', repair: 'Cancelling' },
  Cancelled: { reopen: 'Running', repair: 'Cancelling' },
};

export const isScanOpen = (status: ScanStatus): boolean =>
  status === 'Running' || status === 'Paused' || status === 'Cancelling';

export function mayScan(status: ScanStatus, event: ScanEvent): boolean {
  return transitions[status][event] !== undefined;
}

/** The state in which a scan is while a result of its is read again; undefined where that may not be. */
export function repairStatus(status: ScanStatus): 'Running' | 'Paused' | 'Cancelling' | undefined {
  return transitions[status].repair as 'Running' | 'Paused' | 'Cancelling' | undefined;
}

/** How a Running scan ends once nothing of it is open. */
export function settledStatus(steps: {
  blocked: boolean;
  /** Steps with terminal tasks of which none is completed. */
  withoutSuccess: boolean;
  poisoned: boolean;
}): 'Completed' | 'CompletedWithErrors' {
  return steps.blocked || steps.withoutSuccess || steps.poisoned ? 'CompletedWithErrors' : 'Completed';
}
