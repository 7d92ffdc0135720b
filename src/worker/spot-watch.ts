// Asks again and again whether the machine is about to be taken away, and tells each change once.
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs, pause } from '#sonar/platform/wait.ts';
import type { SpotMetadata, SpotWord } from './spot-metadata.ts';

export type SpotWarning = Extract<SpotWord, { kind: 'rebalance' | 'interruption' }>;

/** A service that does not answer is asked less and less often, up to this. */
const maxFailureMs = 60_000;

/**
 * Looks every `everyMs` until the signal aborts or an interruption is announced: nothing worse can come.
 * The first look is over when `onLooked` is called.
 */
export async function watchSpot(
  metadata: SpotMetadata,
  on: { warned: (warning: SpotWarning) => void; looked: () => void },
  options: { everyMs: number; log: Logger; signal: AbortSignal },
): Promise<void> {
  const { everyMs, log, signal } = options;
  let failures = 0;
  let warned = false;
  while (!signal.aborted) {
    const word = await metadata.look(signal);
    if (signal.aborted) return;
    if (word.kind === 'unavailable') {
      if (failures === 0)
        log.warn(
          { operation: 'spot_metadata_unavailable', reason: word.reason },
          'nobody says whether this machine will be taken; SIGTERM is then the only warning',
        );
      failures += 1;
    } else {
      if (failures > 0) log.info({ operation: 'spot_metadata_back' }, 'the instance metadata answers');
      failures = 0;
    }
    if (word.kind === 'interruption' || (word.kind === 'rebalance' && !warned)) {
      warned = true;
      log.warn({ operation: 'spot_warned', ...word }, 'this machine may be or will be taken away');
      on.warned(word);
    }
    on.looked();
    if (word.kind === 'interruption') return;
    await pause(failures === 0 ? everyMs : backoffMs(failures - 1, everyMs, maxFailureMs), signal);
  }
}
