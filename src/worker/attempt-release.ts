import type { Release } from '#sonar/contracts/worker-api.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import { type AttemptContext, identityOf } from './attempt-context.ts';

/** A worker that must go has no more time than this; a release that does not arrive is a lost task for recovery. */
const releaseForMs = 10_000;

/** Gives the attempt back. Nothing of its command runs any more. True when Sonar answered, whatever it said. */
export async function releaseAttempt(context: AttemptContext, reason: Release['reason']): Promise<boolean> {
  const { parts, message, log } = context;
  const { config } = parts;
  const deadline = performance.now() + releaseForMs;
  for (let tried = 0; !parts.signal.aborted; tried += 1) {
    const outcome = await parts.api.release(message.credential, { ...identityOf(context), reason });
    if (outcome.kind === 'answer') {
      log.info({ operation: 'attempt_released', reason, disposition: outcome.value.disposition }, 'released');
      return true;
    }
    if (outcome.kind === 'refused') {
      log.error(
        { operation: 'release_refused', reason, status: outcome.status, detail: outcome.detail },
        'release refused',
      );
      return true;
    }
    const waitMs = jittered(backoffMs(tried, config.retryFirstMs, config.retryMaxMs), Math.random());
    if (performance.now() + waitMs > deadline) break;
    await pause(waitMs, parts.signal);
  }
  log.warn({ operation: 'release_not_answered', reason }, 'no answer to the release');
  return false;
}
