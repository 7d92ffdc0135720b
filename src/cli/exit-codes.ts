import type { ScanStatus } from '#sonar/contracts/states.ts';

/** What the process says to the script that called it; the numbers of scan states are a promise. */
export const exitCodes = {
  ok: 0,
  fault: 1,
  usage: 2,
  completedWithErrors: 3,
  failed: 4,
  cancelled: 5,
  unreachable: 6,
  /** 128 + SIGINT, as shells have it. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

const codeOfScan: Record<ScanStatus, ExitCode | null> = {
  Running: null,
  Paused: null,
  Cancelling: null,
  Completed: exitCodes.ok,
  CompletedWithErrors: exitCodes.completedWithErrors,
  Failed: exitCodes.failed,
  Cancelled: exitCodes.cancelled,
};

/** Null while the scan may still change. */
export function scanExitCode(status: ScanStatus): ExitCode | null {
  return codeOfScan[status];
}
