// When a draining worker stops waiting for its commands. Several reasons to go may come one after the other; the
// earliest bound counts, and with it its reason.
import type { Release } from '#sonar/contracts/worker-api.ts';
import { maxTimerMs } from '#sonar/platform/wait.ts';
import type { SpotWarning } from './spot-watch.ts';

export interface DrainEnd {
  reason: Release['reason'];
  /** How long to wait for the commands; infinite where nothing presses. */
  forMs: number;
  /** From SIGTERM to SIGKILL of those that did not end. */
  graceMs: number;
}

export interface DrainBound {
  /** The reason and grace that count now. */
  readonly end: DrainEnd;
  /** Aborts when the wait is over. */
  readonly signal: AbortSignal;
  tighten(end: DrainEnd): void;
  clear(): void;
}

export function createDrainBound(first: DrainEnd): DrainBound {
  const over = new AbortController();
  let end = first;
  let dueAt = Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;

  function tighten(next: DrainEnd): void {
    const at = performance.now() + next.forMs;
    if (at >= dueAt) return;
    dueAt = at;
    end = next;
    arm();
  }

  /** A timer that is asked for more than it can hold ends at once: a long wait is made of several. */
  function arm(): void {
    clearTimeout(timer);
    const leftMs = Math.max(0, dueAt - performance.now());
    if (leftMs <= maxTimerMs) timer = setTimeout(() => over.abort(), leftMs);
    else timer = setTimeout(arm, maxTimerMs);
  }

  tighten(first);
  return {
    get end() {
      return end;
    },
    signal: over.signal,
    tighten,
    clear: () => clearTimeout(timer),
  };
}

/** What EC2 gives between the notice and the end; a later time is not believed. */
const noticeMs = 120_000;
/** Kept free before the end, for releases and results to arrive. */
const reserveMs = 10_000;

/**
 * A recommendation presses nobody: what runs may finish, and an interruption would be announced. An interruption
 * leaves the time until it, less what ending and releasing takes. `now` is the machine's clock in Unix milliseconds.
 */
export function drainOfWarning(warning: SpotWarning, termGraceMs: number, now: number): DrainEnd {
  if (warning.kind === 'rebalance')
    return { reason: 'spot', forMs: Number.POSITIVE_INFINITY, graceMs: termGraceMs };
  // Hibernation begins with its notice.
  const given = warning.action === 'hibernate' ? 0 : (warning.at ?? now + noticeMs) - now;
  const left = Math.max(0, Math.min(given, noticeMs) - reserveMs);
  const graceMs = Math.min(termGraceMs, left);
  return { reason: 'spot', forMs: left - graceMs, graceMs };
}
