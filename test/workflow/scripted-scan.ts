// What the workflows ask of their activities, answered by the test. The decisions of the workflow are what is under
// test here, so PostgreSQL is played: a script says what each call finds. The real activities have their own project.
import type {
  FinalizerActivities,
  PlaceReport,
  PlanReport,
  ReconcilerActivities,
  RecoverReport,
  StepSummary,
} from '#sonar/contracts/activities.ts';
import type { ScanStatus } from '#sonar/contracts/states.ts';

export type ActivityName = keyof ReconcilerActivities | keyof FinalizerActivities;
type Answer<Result> = (call: number) => Result | Promise<Result>;

/** Answers by the number of the call, counted from 1. */
export interface ScanScript {
  plan: Answer<PlanReport>;
  place?: Answer<PlaceReport>;
  recover?: Answer<RecoverReport>;
  settle?: Answer<{ status: ScanStatus | undefined }>;
  requestCancel?: Answer<void>;
  drain?: Answer<{ batches: number }>;
}

/** Counts calls and lets a test wait for one, so that no test waits for time. */
export class Calls {
  readonly names: ActivityName[] = [];
  readonly #waiting: { name: ActivityName; call: number; resolve(): void }[] = [];

  count(name: ActivityName): number {
    return this.names.filter((called) => called === name).length;
  }

  /** Resolves when the call has begun. */
  begun(name: ActivityName, call: number): Promise<void> {
    if (this.count(name) >= call) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ name, call, resolve });
    return promise;
  }

  record(name: ActivityName): number {
    this.names.push(name);
    const call = this.count(name);
    for (const waiter of this.#waiting) if (waiter.name === name && waiter.call <= call) waiter.resolve();
    return call;
  }
}

export function step(over: Partial<StepSummary> = {}): StepSummary {
  return {
    step: 'ports',
    state: 'open',
    pending: 0,
    inFlight: 0,
    completed: 0,
    noWork: 0,
    failed: 0,
    cancelled: 0,
    note: '',
    ...over,
  };
}

/** A Running scan in which there is nothing to do, but for what `over` says. */
export function report(over: Partial<PlanReport> = {}): PlanReport {
  return {
    status: 'Running',
    name: 'night watch',
    definition: 'loopback-survey',
    reason: '',
    made: 0,
    pending: false,
    unread: false,
    stale: false,
    settleable: false,
    more: false,
    steps: [step()],
    ...over,
  };
}

/** A report that differs from that of every other tick. */
export const moved = (tick: number, over: Partial<PlanReport> = {}): PlanReport =>
  report({ steps: [step({ completed: tick })], ...over });

export const over = (status: ScanStatus = 'Completed'): PlanReport => report({ status });
