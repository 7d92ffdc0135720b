// Which dispatched tasks are lost, decided from what was read of workers, pulses and attempts. Silence is judged only
// while others are heard: an api or a database that was away makes no worker look dead.
import type { RecoveryRule } from '#sonar/contracts/states.ts';

export interface StalenessBounds {
  /** A worker is alive for so long after its pulse. */
  aliveWithinMs: number;
  /** Intake is shut after so long without any pulse: {@link intakeGapMs}. */
  intakeGapMs: number;
  /** Age floor of messages, of running commands, and of open intake. */
  staleAfterMs: number;
}

/** All times are ages: milliseconds before the moment of the read. */
export interface Intake {
  openMs: number;
  silentMs: number;
}

export interface FleetWorker {
  tags: readonly string[];
  draining: boolean;
  /** Pulses in a row with a free slot, up to 2. */
  freePulses: number;
  /** Since its last pulse, or since its registration where it never pulsed. */
  silentMs: number;
  registeredMs: number;
}

export interface HoldBounds {
  /** Smaller fleets are never held. */
  workers: number;
  windowMs: number;
  holdMs: number;
}

export interface FleetLoss {
  lost: number;
  of: number;
  /** The hold ends in so long. */
  endsInMs: number;
}

/**
 * The longest time without any pulse that makes nobody look dead. Workers pulse each in a turn of its own: when the
 * first is heard after an outage, another's last pulse is a period older than the outage, and its next one a period away.
 */
export const intakeGapMs = (aliveWithinMs: number, pulseEveryMs: number): number =>
  aliveWithinMs - 2 * pulseEveryMs;

export const intakeIsOpen = (
  intake: Intake,
  bounds: Pick<StalenessBounds, 'intakeGapMs' | 'staleAfterMs'>,
): boolean => intake.silentMs <= bounds.intakeGapMs && intake.openMs >= bounds.staleAfterMs;

const isAlive = (worker: { silentMs: number }, bounds: StalenessBounds): boolean =>
  worker.silentMs <= bounds.aliveWithinMs;

/**
 * The newest window in which over half of a large fleet fell silent, if its hold is not over yet. Workers that were
 * draining are no loss, and replaced ones are not to be given. A worker counts from its registration; one that is
 * heard again was not lost.
 */
export function fleetLoss(
  fleet: readonly FleetWorker[],
  bounds: StalenessBounds,
  hold: HoldBounds,
): FleetLoss | undefined {
  const losses = fleet
    .filter((worker) => !isAlive(worker, bounds) && !worker.draining)
    .map((worker) => ({ ...worker, lostMs: worker.silentMs - bounds.aliveWithinMs }))
    .toSorted((one, other) => one.lostMs - other.lostMs);
  const alive = fleet.filter((worker) => isAlive(worker, bounds));
  // Each window ends with a loss; the newest that counts holds the longest.
  let reached = 0;
  for (const [index, { lostMs: endMs }] of losses.entries()) {
    if (endMs >= hold.holdMs) return undefined;
    if (losses[index - 1]?.lostMs === endMs) continue;
    while ((losses[reached]?.lostMs ?? Number.POSITIVE_INFINITY) <= endMs + hold.windowMs) reached += 1;
    const lost = reached - index;
    // Whatever the rest of the fleet, these are too few.
    if (lost * 2 < hold.workers) continue;
    const there = (worker: FleetWorker): boolean => worker.registeredMs >= endMs;
    const of = lost + losses.slice(0, index).filter(there).length + alive.filter(there).length;
    if (of >= hold.workers && lost * 2 > of) return { lost, of, endsInMs: hold.holdMs - endMs };
  }
  return undefined;
}

/**
 * Of tags with messages that nobody has started: those whose messages nobody will. A busy worker takes its next one
 * when a slot comes free, however long that lasts.
 */
export function staleTags(
  tags: readonly string[],
  fleet: readonly FleetWorker[],
  absenceCounts: boolean,
  bounds: StalenessBounds,
): Map<string, RecoveryRule> {
  const alive = fleet.filter((worker) => isAlive(worker, bounds));
  const stale = new Map<string, RecoveryRule>();
  for (const tag of tags) {
    const served = alive.filter((worker) => worker.tags.includes(tag));
    if (served.some((worker) => worker.freePulses >= 2)) stale.set(tag, 'not_started');
    else if (served.length === 0 && absenceCounts) stale.set(tag, 'no_worker');
  }
  return stale;
}

/** What is known of the worker that started an attempt; null where its incarnation is not known any more. */
export interface Holder {
  replacedMs: number | null;
  silentMs: number;
}

/** Why nothing more is to be expected of what an incarnation has started; undefined: it may still finish it. */
export function holderRule(
  holder: Holder | null,
  absenceCounts: boolean,
  bounds: StalenessBounds,
): 'worker_replaced' | 'worker_absent' | undefined {
  if (holder === null) return 'worker_absent';
  if (holder.replacedMs !== null)
    // A worker that lives is told within a pulse and ends its commands.
    return holder.replacedMs > bounds.aliveWithinMs ? 'worker_replaced' : undefined;
  return absenceCounts && !isAlive(holder, bounds) ? 'worker_absent' : undefined;
}

export interface DispatchedAttempt {
  status: 'Published' | 'Running';
  tag: string;
  /** Since the broker had its message; null while that is still to be published. */
  confirmedMs: number | null;
  startedMs: number | null;
  omittedPulses: number;
  holder: Holder | null;
}

export interface FleetView {
  staleTags: ReadonlyMap<string, RecoveryRule>;
  absenceCounts: boolean;
}

/** The rule by which a task is taken back from its current attempt, or undefined: it is left alone. */
export function recoveryRule(
  attempt: DispatchedAttempt,
  view: FleetView,
  bounds: StalenessBounds,
): RecoveryRule | undefined {
  if (attempt.status === 'Published') {
    if (attempt.confirmedMs === null || attempt.confirmedMs < bounds.staleAfterMs) return undefined;
    return view.staleTags.get(attempt.tag);
  }
  const rule = holderRule(attempt.holder, view.absenceCounts, bounds);
  if (rule === 'worker_replaced') return rule;
  if (attempt.omittedPulses > 1) return 'not_listed';
  return attempt.startedMs !== null && attempt.startedMs >= bounds.staleAfterMs ? rule : undefined;
}

export interface Loss {
  status: 'Published' | 'Running';
  recoveries: number;
}

/** A command that was started and lost too often kills its machines: it is not tried again. */
export const isLostForGood = (loss: Loss, maxRecoveries: number): boolean =>
  loss.status === 'Running' && loss.recoveries >= maxRecoveries;
