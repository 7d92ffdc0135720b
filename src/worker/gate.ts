// While the api does not answer, pulling work helps nobody: the gate is shut by whoever sees the outage, and opened
// by whoever gets an answer again (the pulse, if nobody else).
import { pause } from '#sonar/platform/wait.ts';

export interface Gate {
  readonly isOpen: boolean;
  /** Aborts when the gate is shut next; of an already shut gate it is aborted. */
  readonly signal: AbortSignal;
  shut(): void;
  open(): void;
  /** Resolves when the gate is open or the signal aborts. */
  opened(signal: AbortSignal): Promise<void>;
}

export function createGate(): Gate {
  let shutting = new AbortController();
  let opening = Promise.withResolvers<void>();
  opening.resolve();

  return {
    get isOpen() {
      return !shutting.signal.aborted;
    },
    get signal() {
      return shutting.signal;
    },
    shut() {
      if (shutting.signal.aborted) return;
      shutting.abort();
      opening = Promise.withResolvers<void>();
    },
    open() {
      if (!shutting.signal.aborted) return;
      shutting = new AbortController();
      opening.resolve();
    },
    opened: (signal) => untilAborted(opening.promise, signal),
  };
}

/** Resolves with `promise`, or when the signal aborts, whichever is first. */
export async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const aborted = Promise.withResolvers<void>();
  const onAbort = () => aborted.resolve();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Resolves true with `promise`, or false after `ms`. */
export async function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const bound = new AbortController();
  try {
    return await Promise.race([promise.then(() => true), pause(ms, bound.signal).then(() => false)]);
  } finally {
    bound.abort();
  }
}
