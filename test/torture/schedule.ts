// Which fault happens when: a function of the seed and nothing else, so that a run that failed can be tried again.
import type { Random } from './random.ts';

/** Every kind of fault, and how often it is in the deck that they are drawn from. */
export const faultWeights = {
  kill_api: 2,
  kill_reconciler: 2,
  kill_finalizer: 2,
  kill_publisher: 2,
  kill_worker: 3,
  kill_helper: 2,
  kill_worker_and_helper: 2,
  stop_worker: 3,
  stop_machine: 2,
  stop_role: 2,
  stop_role_past_lease: 1,
  drain_worker: 2,
  restart_role: 2,
  kill_postgres: 1,
  kill_rabbitmq: 1,
  kill_s3: 1,
  kill_temporal: 1,
  restart_postgres: 1,
  restart_rabbitmq: 1,
  restart_s3: 1,
  restart_temporal: 1,
  cut_service: 3,
  cut_member: 2,
  part_member: 3,
  hold_member: 2,
  slow_service: 3,
  callbacks_repeated: 2,
  callbacks_reordered: 2,
  callbacks_delayed: 2,
  callbacks_late: 2,
  callbacks_unanswered: 2,
  messages_duplicated: 3,
  step_clock: 3,
} as const;
export type FaultKind = keyof typeof faultWeights;

export interface PlannedFault {
  atMs: number;
  kind: FaultKind;
  /** In [0, 1): which of the candidates, and of the candidates' parts. */
  target: number;
  part: number;
  /** In [0, 1): how long, between the bounds of its kind. */
  span: number;
}

// One fault in six seconds on average leaves work to be done between them, and makes some 200 in 20 minutes.
const shortestGapMs = 3_000;
const longestGapMs = 9_000;
/** The first scans are to be under way. */
const firstAtMs = 4_000;

/** Faults until `forMs`, drawn from a deck without putting back, so that each kind comes up. */
export function planFaults(random: Random, forMs: number, kinds: readonly FaultKind[]): PlannedFault[] {
  const whole = kinds.flatMap((kind) => Array.from({ length: faultWeights[kind] }, () => kind));
  let deck: FaultKind[] = [];
  const planned: PlannedFault[] = [];
  for (let atMs = firstAtMs; atMs < forMs; atMs += random.between(shortestGapMs, longestGapMs)) {
    if (deck.length === 0) deck = random.shuffled(whole);
    const kind = deck.pop() as FaultKind;
    planned.push({ atMs, kind, target: random.next(), part: random.next(), span: random.next() });
  }
  return planned;
}

/** The candidate that a share in [0, 1) stands for. */
export function chosen<T>(candidates: readonly T[], share: number): T {
  const candidate = candidates[Math.floor(share * candidates.length)];
  if (candidate === undefined) throw new RangeError('there is no candidate for this fault');
  return candidate;
}
