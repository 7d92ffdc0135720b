// A part that does the same thing again and again, and rests when there is nothing to do.
import { messageOf } from './errors.ts';
import type { Logger } from './logger.ts';
import type { Service } from './service.ts';
import { jittered, pause } from './wait.ts';

/**
 * Calls `work` until it is stopped; `true` from it means that there may be more at once. Without work the
 * rest doubles from `minRestMs` to `maxRestMs`; a fault is logged and rested upon like an empty round.
 */
export function createLoop(options: {
  name: string;
  minRestMs: number;
  maxRestMs: number;
  log: Logger;
  work(signal: AbortSignal): Promise<boolean>;
}): Service {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    let restMs = options.minRestMs;
    while (!stopping.signal.aborted) {
      const more = await options.work(stopping.signal).catch((error: unknown) => {
        options.log.error({ operation: `${options.name}_failed`, error: messageOf(error) });
        return false;
      });
      if (more) {
        restMs = options.minRestMs;
        continue;
      }
      await pause(jittered(restMs, Math.random()), stopping.signal);
      restMs = Math.min(options.maxRestMs, restMs * 2);
    }
  };

  return {
    name: options.name,
    start() {
      running ??= run();
      return Promise.resolve();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
