// Waiting, always bounded and always abortable.
import { setTimeout as delay } from 'node:timers/promises';

/** What a timer can hold; asked for more it ends at once. Some 24 days. */
export const maxTimerMs = 2 ** 31 - 1;

/** Sleeps `ms`, at most what a timer can hold, or less when the signal aborts; never throws. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await delay(Math.min(ms, maxTimerMs), undefined, { signal, ref: true }).catch(() => undefined);
}

/** Exponential backoff: `firstMs` doubling to `maxMs`; `attempt` counts from 0. */
export function backoffMs(attempt: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30));
}

/** Full jitter keeps a fleet from knocking all at once; `random` is in [0, 1). */
export function jittered(ms: number, random: number): number {
  return Math.round(ms * (0.5 + random / 2));
}
