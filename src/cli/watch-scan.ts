import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import { isSonarError, type SonarError } from '#sonar/platform/errors.ts';
import { backoffMs, pause } from '#sonar/platform/wait.ts';
import type { ApiClient } from './api-client.ts';
import { scanExitCode } from './exit-codes.ts';

export type WatchEvent =
  | { kind: 'seen'; detail: ScanDetail }
  /** No answer for `silentMs`; asked again until the patience ends. */
  | { kind: 'silent'; silentMs: number; fault: SonarError };

export interface WatchOptions {
  /** Between two looks at the scan. */
  pollMs?: number;
  /** How long the api may be silent: longer than a restart of it takes, shorter than anybody's patience. */
  patienceMs?: number;
  /** The api has answered a moment ago, so that silence is an outage and not a wrong address. */
  reached?: boolean;
  signal?: AbortSignal;
}

const defaultPollMs = 1_000;
const defaultPatienceMs = 120_000;
const firstRetryMs = 250;

/**
 * Looks at a scan until it has ended; the last event shows it ended. A restart of the api does not end a
 * watch: once it has answered, network faults, timeouts and 5xx are asked again within `patienceMs`; then
 * the fault is thrown, as every other fault is at once. Ends early, without a fault, when the signal aborts.
 */
export async function* watchScan(
  client: Pick<ApiClient, 'scan'>,
  id: string,
  options: WatchOptions = {},
): AsyncGenerator<WatchEvent, void, undefined> {
  const { pollMs = defaultPollMs, patienceMs = defaultPatienceMs, signal } = options;
  // `latest` is settled by the first answer: a scan started meanwhile must not take the watch over.
  let watched = id;
  let reached = options.reached ?? false;
  let answeredAt = performance.now();
  let failures = 0;
  while (!signal?.aborted) {
    try {
      const detail = await client.scan(watched);
      watched = detail.id;
      reached = true;
      answeredAt = performance.now();
      failures = 0;
      yield { kind: 'seen', detail };
      if (scanExitCode(detail.status) !== null) return;
      await pause(pollMs, signal);
    } catch (error) {
      if (signal?.aborted) return;
      const silentMs = performance.now() - answeredAt;
      if (!reached || silentMs > patienceMs || !passes(error)) throw error;
      yield { kind: 'silent', silentMs, fault: error };
      await pause(backoffMs(failures++, firstRetryMs, 4 * firstRetryMs), signal);
    }
  }
}

function passes(error: unknown): error is SonarError {
  if (isSonarError(error, 'unreachable')) return true;
  return isSonarError(error, 'internal') && Number(error.details.status) >= 500;
}
