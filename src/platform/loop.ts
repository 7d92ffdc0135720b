// A part that does the same thing again and again, and rests when there is nothing to do.
import { messageOf } from './errors.ts';
import type { Logger } from './logger.ts';
import type { Service } from './service.ts';
import { jittered, pause } from './wait.ts';

export interface Loop extends Service {
  /** There is work: a rest that is under way ends now, and the next ones are short again. */
  poke(): void;
}

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
}): Loop {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let poked = new AbortController();

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
      await pause(jittered(restMs, Math.random()), AbortSignal.any([stopping.signal, poked.signal]));
      restMs = poked.signal.aborted ? options.minRestMs : Math.min(options.maxRestMs, restMs * 2);
      poked = new AbortController();
    }
  };

  return {
    name: options.name,
    poke: () => poked.abort(),
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
