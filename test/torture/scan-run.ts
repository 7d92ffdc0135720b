// The scans of a run: each started at its time and operated to its end.
import { messageOf } from '#sonar/platform/errors.ts';
import { pause } from '#sonar/platform/wait.ts';
import type { PlannedScan } from './scans/catalog.ts';
import type { Operator } from './scans/operator.ts';

export interface ScanRun {
  planned: PlannedScan;
  /** Undefined until its start was answered. */
  id: string | undefined;
  ended: boolean;
  /** Why its operator gave up. */
  fault: string | undefined;
}

export interface ScanRuns {
  readonly all: readonly ScanRun[];
  open(): number;
  /** Resolves when every scan has ended or its operator has given up. */
  readonly over: Promise<void>;
}

export function runScans(
  planned: readonly PlannedScan[],
  operator: Operator,
  signal: AbortSignal,
  say: (line: string) => void,
): ScanRuns {
  const all: ScanRun[] = planned.map((scan) => ({
    planned: scan,
    id: undefined,
    ended: false,
    fault: undefined,
  }));
  const operate = async (run: ScanRun): Promise<void> => {
    const { planned: scan } = run;
    try {
      await pause(scan.atMs, signal);
      signal.throwIfAborted();
      if (scan.shape.ownDefinition) await operator.define(scan.shape, scan.definition);
      run.id = await operator.start(scan.definition, scan.ref, { scan: scan.ref, ...scan.inputs });
      await scan.operate?.(operator, run.id, scan.ref);
      const { status } = await operator.ended(run.id);
      run.ended = true;
      say(`scan ${scan.ref} ended ${status}`);
    } catch (error) {
      run.fault = messageOf(error);
      if (!signal.aborted) say(`scan ${scan.ref} was given up: ${run.fault}`);
    }
  };
  return {
    all,
    open: () => all.filter(({ ended }) => !ended).length,
    over: Promise.all(all.map(operate)).then(() => undefined),
  };
}
