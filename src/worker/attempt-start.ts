import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import { type AttemptContext, identityOf } from './attempt-context.ts';

export type StartEnd =
  /** With the environment variables that nothing but the command may see. */
  | { kind: 'run'; secrets: Record<string, string> }
  /** Not ours to run: done, cancelled, or another delivery has it. */
  | { kind: 'skip'; reason: string }
  /** The api will never take it. */
  | { kind: 'refused'; detail: string }
  /** Nobody knows whether it is started; the message must come back. */
  | { kind: 'unknown' };

/** Tells Sonar that the command is about to run; tries until the bound, always with the same delivery id. */
export async function reportStarted(context: AttemptContext): Promise<StartEnd> {
  const { parts, message, log, interrupted } = context;
  const { config } = parts;
  const deadline = performance.now() + config.startedForMs;
  for (let tried = 0; !interrupted.aborted && !parts.signal.aborted; tried += 1) {
    const outcome = await parts.api.started(message.credential, {
      ...identityOf(context),
      deliveryId: context.deliveryId,
      pulseSequence: parts.pulseSequence(),
    });
    if (outcome.kind === 'answer') {
      const answer = outcome.value;
      return answer.disposition === 'run'
        ? { kind: 'run', secrets: answer.secrets }
        : { kind: 'skip', reason: answer.reason };
    }
    if (outcome.kind === 'refused')
      return { kind: 'refused', detail: `${outcome.status} ${outcome.code ?? ''}: ${outcome.detail}` };
    log.warn({ operation: 'started_not_answered', reason: outcome.reason, tried }, 'no answer to started');
    const waitMs = jittered(backoffMs(tried, config.retryFirstMs, config.retryMaxMs), Math.random());
    if (performance.now() + waitMs > deadline) break;
    await pause(waitMs, interrupted);
  }
  return { kind: 'unknown' };
}
