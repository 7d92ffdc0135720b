import { exitCodes } from './exit-codes.ts';
import type { Session } from './session.ts';

/** Something that runs until it is stopped or ends by itself; `done` gives the exit code. */
export interface LongRunning {
  stop(): Promise<void>;
  done: Promise<number>;
}

/** One Ctrl-C may arrive twice: from the terminal, and passed on by the process that started this one. */
const sameInterruptionMs = 700;

export interface StayOptions {
  /** For a start that does not hear the signal: how long after it the process ends, as if it had crashed. */
  startGraceMs?: number;
  /** The second interruption stops it again, which it takes for "at once"; only the third ends the process. */
  stopAgain?: boolean;
}

/**
 * Starts something and stays until it is done. The first Ctrl-C (or SIGTERM) aborts the start or stops it
 * in order; the second ends the process at once, or stops it once more where it can be stopped harder.
 */
export async function stayUntilStopped(
  session: Session,
  start: (signal: AbortSignal) => Promise<LongRunning>,
  options: StayOptions = {},
): Promise<number> {
  const { onInterrupt, exitNow } = session.surroundings;
  const interruption = new AbortController();
  const interrupted = Promise.withResolvers<'interrupted'>();
  let lastAt: number | null = null;
  let interruptions = 0;
  let stopHarder: (() => void) | undefined;
  let giveUp: NodeJS.Timeout | undefined;
  let started = false;
  const settled = onInterrupt(() => {
    const now = performance.now();
    const again = lastAt === null || now - lastAt > sameInterruptionMs;
    if (!again) return;
    lastAt = now;
    interruptions += 1;
    if (interruptions === 1) {
      session.hint('stopping in order; Ctrl-C again ends it at once');
      interruption.abort();
      interrupted.resolve('interrupted');
      if (!started && options.startGraceMs !== undefined)
        giveUp = setTimeout(() => exitNow(exitCodes.interrupted), options.startGraceMs);
    } else if (interruptions === 2 && options.stopAgain === true && stopHarder !== undefined) stopHarder();
    else exitNow(exitCodes.interrupted);
  });
  try {
    const running = await start(interruption.signal).finally(() => clearTimeout(giveUp));
    started = true;
    // Its faults are those of the first stop, which is waited for.
    stopHarder = () => void running.stop().catch(() => undefined);
    const first = await Promise.race([running.done, interrupted.promise]);
    if (first !== 'interrupted') return first;
    await running.stop();
    return await running.done;
  } catch (error) {
    // What a start throws because it was aborted is no fault; what a stop throws is one.
    if (interruption.signal.aborted && isAbort(error, interruption.signal)) return exitCodes.interrupted;
    throw error;
  } finally {
    settled();
  }
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error as { name?: unknown } | null)?.name === 'AbortError';
}
