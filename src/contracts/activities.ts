// What workflows ask of activities. Types only: this file is part of the workflow bundle.
import type { ScanId } from './ids.ts';
import type { ScanStatus } from './states.ts';

/** A step as the operator sees it in the Temporal UI. */
export interface StepSummary {
  step: string;
  state: string;
  pending: number;
  inFlight: number;
  completed: number;
  noWork: number;
  failed: number;
  cancelled: number;
  note: string;
}

export interface PlanReport {
  /** Undefined: there is no such scan, so there is nothing to coordinate. */
  status: ScanStatus | undefined;
  name: string;
  definition: string;
  reason: string;
  /** Tasks made by this pass. */
  made: number;
  /** There is due pending work: ask for a placement pass. */
  pending: boolean;
  /** Results wait to be read. */
  unread: boolean;
  /** Something dispatched may be lost: ask for a recovery pass. */
  stale: boolean;
  /** Nothing seems left: ask to settle. */
  settleable: boolean;
  /** The pass was cut short: tick again at once. */
  more: boolean;
  steps: StepSummary[];
}

export interface PlaceReport {
  /** What this request's own pass placed, as text: "8 on nmap". Empty where another pass is under way. */
  placed: string;
}

export interface MaintainReport {
  /** Scan workflows that were started. */
  restarted: number;
  /** Tasks of any scan that were taken back. */
  recovered: number;
  /** Old rows that went: of the outbox's ledger, and of workers. */
  purged: number;
  retired: number;
  /** Results of any scan wait to be read. */
  unread: boolean;
}

export interface RecoverReport {
  /** What this request's own pass took back of the scan, as text: "3 lost tasks". Empty where another is under way. */
  recovered: string;
}

/** Served by the task queue `sonar.reconciler`. */
export interface ReconcilerActivities {
  plan(input: { scanId: ScanId }): Promise<PlanReport>;
  place(input: { scanId: ScanId }): Promise<PlaceReport>;
  recover(input: { scanId: ScanId }): Promise<RecoverReport>;
  settle(input: { scanId: ScanId }): Promise<{ status: ScanStatus | undefined }>;
  requestCancel(input: { scanId: ScanId }): Promise<void>;
  maintain(): Promise<MaintainReport>;
}

/** Served by the task queue `sonar.finalizer`. */
export interface FinalizerActivities {
  /**
   * Reads due results of any scan, at most about a minute, until none of the given scan (of any, for null)
   * has been due for a moment.
   */
  drain(input: { scanId: ScanId | null }): Promise<{ batches: number }>;
}
