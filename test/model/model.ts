// The reference: what one scan of the model's definition, its workers and its messages are, in plain objects. No SQL,
// no code of the flows: the same rules written a second time, so that a fault in one shows against the other.
import type { LiveWorker } from '../fixtures/live-worker.ts';

export type StepName = 'each' | 'child' | 'total' | 'report';
export const stepNames: readonly StepName[] = ['each', 'child', 'total', 'report'];
export const tagsOf: Record<StepName, readonly string[]> = {
  each: ['t'],
  child: ['t', 'u'],
  total: ['u'],
  report: ['t'],
};

export interface ModelTask {
  id: string;
  step: StepName;
  parent: string | null;
  ordinal: number | null;
  status: 'Pending' | 'Published' | 'Running' | 'Completed' | 'Failed' | 'Cancelled';
  attempt: string | null;
  retries: number;
  releases: number;
  recoveries: number;
  /** Not placed before. */
  dueAt: number;
  finalized: boolean;
  /** Its dependents are not made yet. */
  planDue: boolean;
  superseded: boolean;
  failure: string | null;
  /** What its accepted result holds for the reader. */
  rows: 'none' | 'good' | 'bad';
  /** The attempt whose result was accepted. */
  accepted: string | null;
}

export interface ModelAttempt {
  id: string;
  task: ModelTask;
  tag: string;
  /** Of the revision it was placed by. */
  maxRetries: number;
  confirmedAt: number | null;
  startedAt: number | null;
  startedSequence: number;
  delivery: string | null;
  holder: Incarnation | null;
  ended: boolean;
  cancelAskedAt: number | null;
  omitted: number;
  digest: string | null;
}

export interface Incarnation {
  worker: LiveWorker;
  tags: readonly string[];
  slots: number;
  pulsedAt: number;
  draining: boolean;
  replacedAt: number | null;
  freePulses: number;
  /** Attempts whose command runs there, or whose result was not answered yet. */
  hand: Set<string>;
}

export interface Model {
  now: number;
  scan: { status: string; generation: number; revision: Revision };
  /** The newest one; the scan takes it at its next plan. */
  newest: Revision;
  steps: Record<StepName, { activated: boolean; state: 'open' | 'settled' | 'blocked' }>;
  lines: number;
  tasks: Map<string, ModelTask>;
  attempts: Map<string, ModelAttempt>;
  /** By name; the newest incarnation of each. */
  fleet: Map<string, Incarnation>;
  /** Older incarnations whose processes may still speak. */
  ghosts: Incarnation[];
  /** Tag → attempts whose messages wait there, possibly more than once. */
  queues: Map<string, string[]>;
  /** Attempts whose delivery waits in the outbox. */
  outbox: Set<string>;
  intake: { openSince: number; touchedAt: number };
  /** Attempts whose good rows are in the inventory. */
  effects: Set<string>;
  poisoned: Set<string>;
}

export interface Revision {
  retries: number;
  concurrency: number | null;
}

export const isOver = (task: ModelTask): boolean =>
  task.status === 'Completed' || task.status === 'Failed' || task.status === 'Cancelled';

/** Tasks that count: those that no retry has made void. */
export const liveTasks = (model: Model, step?: StepName): ModelTask[] =>
  [...model.tasks.values()].filter((task) => !task.superseded && (step === undefined || task.step === step));

export const isScanOver = (model: Model): boolean =>
  !['Running', 'Paused', 'Cancelling'].includes(model.scan.status);

export const isAlive = (model: Model, worker: Incarnation, withinMs: number): boolean =>
  worker.replacedAt === null && model.now - worker.pulsedAt <= withinMs;

export const unended = (model: Model): ModelAttempt[] =>
  [...model.attempts.values()].filter((attempt) => !attempt.ended);

export const attemptOf = (model: Model, id: string): ModelAttempt => {
  const attempt = model.attempts.get(id);
  if (!attempt) throw new Error(`the model knows no attempt ${id}`);
  return attempt;
};
