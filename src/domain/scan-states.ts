// The legal transitions of a scan, and the state in which a settled one ends.
import type { ScanStatus } from '#sonar/contracts/states.ts';

export type ScanEvent = 'pause' | 'resume' | 'cancel' | 'settle' | 'fail' | 'reopen';

const transitions: Record<ScanStatus, Partial<Record<ScanEvent, ScanStatus | 'by outcome'>>> = {
  Running: { pause: 'Paused', cancel: 'Cancelling', settle: 'by outcome', fail: 'Cancelling' },
  Paused: { resume: 'Running', cancel: 'Cancelling', fail: 'Cancelling' },
  // Cancelled where somebody asked for it, Failed where a fault did.
  Cancelling: { settle: 'by outcome' },
  Completed: { reopen: 'Running' },
  CompletedWithErrors: { reopen: 'Running' },
  Failed: { reopen: 'Running' },
  Cancelled: { reopen: 'Running' },
};

export const isScanOpen = (status: ScanStatus): boolean =>
  status === 'Running' || status === 'Paused' || status === 'Cancelling';

export function mayScan(status: ScanStatus, event: ScanEvent): boolean {
  return transitions[status][event] !== undefined;
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
