// The schedule carried out: each fault at its time, several at once where they last.
import { messageOf } from '#sonar/platform/errors.ts';
import { pause } from '#sonar/platform/wait.ts';
import { faults } from './faults/all-faults.ts';
import type { FaultContext } from './faults/fault-context.ts';
import type { FaultKind, PlannedFault } from './schedule.ts';

export interface DoneFault {
  kind: FaultKind;
  plannedAtMs: number;
  /** ISO 8601, as in the logs. */
  at: string;
  /** False where there was nothing to harm: it does not count. */
  happened: boolean;
  detail: string;
}

/** Returns when the last fault is over; `report` is told of each when it has been done. */
export async function runFaults(
  planned: readonly PlannedFault[],
  context: FaultContext,
  report: (done: DoneFault) => void,
): Promise<void> {
  const begun = performance.now();
  const lasting: Promise<void>[] = [];
  for (const fault of planned) {
    await pause(fault.atMs - (performance.now() - begun), context.signal);
    if (context.signal.aborted) break;
    const at = new Date().toISOString();
    lasting.push(
      faults[fault.kind](context, fault)
        .then(
          (detail) => ({ happened: true, detail }),
          (error: unknown) => ({ happened: false, detail: messageOf(error) }),
        )
        .then((outcome) => report({ kind: fault.kind, plannedAtMs: fault.atMs, at, ...outcome })),
    );
  }
  await Promise.all(lasting);
}
