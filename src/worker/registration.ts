import type { Registration, RegistrationAnswer } from '#sonar/contracts/worker-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import type { ApiClient } from './api-client.ts';
import type { WorkerConfig } from './config.ts';

/**
 * Registers this incarnation; waits for an api that is away. Null when the signal aborted first.
 * @throws SonarError `unauthenticated`, `forbidden` or `invalid`, with the way out.
 */
export async function registerWorker(
  registration: Registration,
  api: ApiClient,
  config: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<RegistrationAnswer | null> {
  for (let tried = 0; !signal.aborted; tried += 1) {
    const outcome = await api.register(registration);
    if (outcome.kind === 'answer') return outcome.value;
    if (outcome.kind === 'refused') throw refusal(outcome.status, outcome.detail, config);
    log.warn(
      { operation: 'worker_registration_failed', apiUrl: config.apiUrl, reason: outcome.reason, tried },
      'the api does not answer; it is tried again',
    );
    await pause(jittered(backoffMs(tried, config.retryFirstMs, config.retryMaxMs), Math.random()), signal);
  }
  return null;
}

/** What a refusal means for the person who started the worker. */
export function refusal(status: number, detail: string, { apiUrl, name, tags }: WorkerConfig): SonarError {
  if (status === 401)
    return new SonarError(
      'unauthenticated',
      `the api at ${apiUrl} does not accept the token of worker ${name} (${detail}); set SONAR_TOKEN to a worker token, made with "sonar token create --role worker"`,
    );
  if (status === 403)
    return new SonarError(
      'forbidden',
      `the token of worker ${name} is not allowed its name or its tags ${tags.join(', ')} (${detail}); make one that is, with "sonar token create --role worker", or change them`,
    );
  return new SonarError(
    'invalid',
    `the api at ${apiUrl} refuses worker ${name}: ${detail} (status ${status})`,
  );
}
