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

/** Served by the task queue `sonar.reconciler`. */
export interface ReconcilerActivities {
  plan(input: { scanId: ScanId }): Promise<PlanReport>;
  place(input: { scanId: ScanId }): Promise<PlaceReport>;
  settle(input: { scanId: ScanId }): Promise<{ status: ScanStatus | undefined }>;
  requestCancel(input: { scanId: ScanId }): Promise<void>;
  maintain(): Promise<{ restarted: number; purged: number; unread: boolean }>;
}

/** Served by the task queue `sonar.finalizer`. */
export interface FinalizerActivities {
  /**
   * Reads due results of any scan, at most about a minute, until none of the given scan (of any, for null)
   * has been due for a moment.
   */
  drain(input: { scanId: ScanId | null }): Promise<{ batches: number }>;
}
