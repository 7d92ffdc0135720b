// Waiting, always bounded and always abortable.
import { setTimeout as delay } from 'node:timers/promises';

/** Sleeps `ms`, or less when the signal aborts; never throws. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await delay(ms, undefined, { signal, ref: true }).catch(() => undefined);
}

/** Exponential backoff: `firstMs` doubling to `maxMs`; `attempt` counts from 0. */
export function backoffMs(attempt: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30));
}

/** Full jitter keeps a fleet from knocking all at once; `random` is in [0, 1). */
export function jittered(ms: number, random: number): number {
  return Math.round(ms * (0.5 + random / 2));
}
