// What callbacks, pulses and the recovery come to, in the model.
import {
  attemptOf,
  type Incarnation,
  isAlive,
  type Model,
  type ModelAttempt,
  type ModelTask,
  unended,
} from './model.ts';
import { bounds, maxRecoveries, maxReleases } from './times.ts';

export function started(
  model: Model,
  attempt: ModelAttempt,
  worker: Incarnation,
  delivery: string,
): 'run' | 'skip' {
  if (worker.replacedAt !== null) return 'skip';
  const { task } = attempt;
  const current = task.attempt === attempt.id;
  if (current && task.status === 'Published') {
    task.status = 'Running';
    Object.assign(attempt, {
      startedAt: model.now,
      startedSequence: worker.worker.sequence,
      delivery,
      holder: worker,
    });
    return 'run';
  }
  const again = attempt.delivery === delivery && attempt.holder === worker;
  return current && task.status === 'Running' && again ? 'run' : 'skip';
}

export interface GivenResult {
  digest: string;
  outcome: 'completed' | 'failed';
  rows: ModelTask['rows'];
}

export function answered(
  model: Model,
  attempt: ModelAttempt,
  result: GivenResult,
): 'accepted' | 'duplicate' | 'conflict' | 'superseded' {
  if (attempt.digest !== null) return attempt.digest === result.digest ? 'duplicate' : 'conflict';
  const { task } = attempt;
  attempt.ended = true;
  if (task.attempt !== attempt.id || task.status !== 'Running') return 'superseded';
  attempt.digest = result.digest;
  task.attempt = null;
  if (result.outcome === 'failed' && task.retries < attempt.maxRetries) {
    task.status = 'Pending';
    task.dueAt = model.now + bounds.retryBackoffMs * 2 ** task.retries;
    task.retries += 1;
    return 'accepted';
  }
  const complete = result.outcome === 'completed';
  Object.assign(task, {
    status: complete ? 'Completed' : 'Failed',
    failure: complete ? null : 'command_failed',
    finalized: result.rows === 'none',
    planDue: complete && result.rows === 'none',
    rows: result.rows,
    accepted: attempt.id,
  } satisfies Partial<ModelTask>);
  return 'accepted';
}

export function released(attempt: ModelAttempt): 'accepted' | 'superseded' {
  const { task } = attempt;
  attempt.ended = true;
  if (task.attempt !== attempt.id || (task.status !== 'Published' && task.status !== 'Running'))
    return 'superseded';
  task.releases += 1;
  task.attempt = null;
  task.dueAt = 0;
  task.status = task.releases >= maxReleases ? 'Failed' : 'Pending';
  if (task.status === 'Failed') task.failure = 'RELEASED_TOO_OFTEN';
  return 'accepted';
}

export interface GivenPulse {
  listed: readonly string[];
  freeSlots: number;
  draining: boolean;
}

/** What is due at each pulse; the sequence counts itself. */
export function pulsed(
  model: Model,
  worker: Incarnation,
  pulse: GivenPulse,
): { replaced: boolean; cancel: Set<string>; superseded: Set<string> } {
  if (worker.replacedAt === null) {
    Object.assign(worker, {
      pulsedAt: model.now,
      draining: pulse.draining,
      freePulses: pulse.freeSlots > 0 && !pulse.draining ? Math.min(2, worker.freePulses + 1) : 0,
    });
    const { intake } = model;
    if (model.now - intake.touchedAt > bounds.intakeGapMs) intake.openSince = model.now;
    intake.touchedAt = model.now;
    for (const attempt of unended(model)) {
      if (attempt.holder !== worker) continue;
      const isListed = pulse.listed.includes(attempt.id);
      if (attempt.cancelAskedAt !== null) attempt.ended = !isListed;
      else attempt.omitted = isListed ? 0 : Math.min(2, attempt.omitted + 1);
    }
  }
  const known = pulse.listed.map((id) => attemptOf(model, id));
  const ids = (attempts: ModelAttempt[]): Set<string> => new Set(attempts.map(({ id }) => id));
  return {
    replaced: worker.replacedAt !== null,
    cancel: ids(known.filter((attempt) => attempt.cancelAskedAt !== null && !attempt.ended)),
    superseded: ids(known.filter((attempt) => attempt.ended && attempt.digest === null)),
  };
}

/** Absence says something only after pulses were taken without a gap for as long as it takes to be stale. */
const absenceCounts = ({ now, intake }: Model): boolean =>
  now - intake.touchedAt <= bounds.intakeGapMs && now - intake.openSince >= bounds.staleAfterMs;

const isSilent = (model: Model, worker: Incarnation): boolean =>
  absenceCounts(model) && model.now - worker.pulsedAt > bounds.aliveWithinMs;

function isLost(model: Model, attempt: ModelAttempt): boolean {
  const alive = [...model.fleet.values()].filter((worker) => isAlive(model, worker, bounds.aliveWithinMs));
  if (attempt.task.status === 'Published') {
    if (attempt.confirmedAt === null || model.now - attempt.confirmedAt < bounds.staleAfterMs) return false;
    const served = alive.filter((worker) => worker.tags.includes(attempt.tag));
    return served.some((worker) => worker.freePulses >= 2) || (served.length === 0 && absenceCounts(model));
  }
  const { holder } = attempt;
  if (holder === null || attempt.startedAt === null) throw new Error('a Running task has no holder');
  if (holder.replacedAt !== null && model.now - holder.replacedAt > bounds.aliveWithinMs) return true;
  if (attempt.omitted >= 2) return true;
  return (
    model.now - attempt.startedAt >= bounds.staleAfterMs &&
    holder.replacedAt === null &&
    isSilent(model, holder)
  );
}

export function recovered(model: Model): void {
  const takeBack = ['Running', 'Paused'].includes(model.scan.status);
  const lost = unended(model).filter(
    (attempt) =>
      takeBack &&
      attempt.cancelAskedAt === null &&
      attempt.task.attempt === attempt.id &&
      isLost(model, attempt),
  );
  for (const attempt of lost) {
    const { task } = attempt;
    const ran = task.status === 'Running';
    const forGood = ran && task.recoveries >= maxRecoveries;
    attempt.ended = true;
    Object.assign(task, {
      status: forGood ? 'Failed' : 'Pending',
      attempt: null,
      dueAt: 0,
      recoveries: task.recoveries + (ran && !forGood ? 1 : 0),
      failure: forGood ? 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' : null,
    });
  }
  endAbandoned(model);
}

/** Cancelled commands that nobody will tell about any more. */
export function endAbandoned(model: Model): void {
  for (const attempt of unended(model)) {
    if (attempt.cancelAskedAt === null || attempt.holder === null) continue;
    const { holder } = attempt;
    attempt.ended =
      model.now - attempt.cancelAskedAt >= bounds.cancelGraceMs ||
      holder.replacedAt !== null ||
      isSilent(model, holder);
  }
}
