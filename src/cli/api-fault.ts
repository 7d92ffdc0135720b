// What went wrong between the CLI and the API, as one SonarError that names the thing and the way out.
import type { Problem } from '#sonar/contracts/scan-api.ts';
import { type FaultCode, isSonarError, messageOf, SonarError } from '#sonar/platform/errors.ts';
import type { Connection } from './connection.ts';

/** `details` of a fault of the API: `status`, and from its problem `problem` and `problems`. */
export function faultOfAnswer(
  status: number,
  problem: Problem | null,
  connection: Connection,
  what: string,
): SonarError {
  const said = problem?.detail || problem?.title || `status ${status} without a reason`;
  const details: Record<string, unknown> = { status };
  if (problem !== null) details.problem = problem.code;
  if (problem?.problems !== undefined) details.problems = problem.problems;
  return new SonarError(codeOfStatus(status), messageOfStatus(status, said, connection, what), { details });
}

function codeOfStatus(status: number): FaultCode {
  if (status === 401) return 'unauthenticated';
  if (status === 403) return 'forbidden';
  if (status === 404) return 'not_found';
  if (status === 409) return 'conflict';
  if (isPassing(status)) return 'unreachable';
  return status >= 500 ? 'internal' : 'invalid';
}

/** A proxy without its api, an api without its database, too many requests: they pass by themselves. */
function isPassing(status: number): boolean {
  return status === 408 || status === 429 || status === 502 || status === 503 || status === 504;
}

function messageOfStatus(status: number, said: string, connection: Connection, what: string): string {
  const { apiUrl, tokenSource } = connection;
  if (status === 401)
    return `the API at ${apiUrl} does not know the token from ${tokenSource}: ${said}. ${wayToToken(tokenSource)}`;
  if (status === 403)
    return `the token from ${tokenSource} may not ${what}: ${said}. Use one of a higher role`;
  if (status === 404 && said.startsWith('Route '))
    return `${apiUrl} is no Sonar API of this version: ${said}`;
  if (isPassing(status))
    return `the API at ${apiUrl} cannot answer now (${status}): ${said}. Try again, or see: sonar doctor`;
  if (status >= 500)
    return `the API at ${apiUrl} failed to ${what} (${status}): ${said}. Its log has the cause`;
  return said;
}

function wayToToken(tokenSource: string): string {
  if (tokenSource.endsWith('cli.json')) return 'Run "sonar up" again: it writes a new one';
  return 'An admin makes one with: sonar token create --role operator --name NAME';
}

/** The fault of a request that got no answer. `sent` may be true only when the API can have acted on it. */
export function faultOfSilence(error: unknown, connection: Connection, timeoutMs: number): SonarError {
  if (isSonarError(error)) return error;
  const { apiUrl, apiUrlSource } = connection;
  const failure = error as { name?: string; cause?: unknown };
  if (failure.name === 'TimeoutError')
    return new SonarError(
      'unreachable',
      `the API at ${apiUrl} did not answer within ${timeoutMs / 1000} s; see: sonar doctor`,
      {
        cause: error,
        details: { network: 'ETIMEDOUT' },
      },
    );
  const network = networkCode(failure.cause ?? error);
  const details = { network };
  if (network === 'ECONNREFUSED')
    return new SonarError(
      'unreachable',
      `no Sonar API at ${apiUrl} (from ${apiUrlSource}): nothing listens there; start one with "sonar up", or set SONAR_API_URL`,
      { cause: error, details },
    );
  if (network === 'ENOTFOUND' || network === 'EAI_AGAIN')
    return new SonarError(
      'unreachable',
      `no Sonar API at ${apiUrl} (from ${apiUrlSource}): the host name does not resolve; check the address`,
      { cause: error, details },
    );
  const reason = messageOf(failure.cause ?? error);
  return new SonarError('unreachable', `the API at ${apiUrl} did not answer: ${reason}; see: sonar doctor`, {
    cause: error,
    details,
  });
}

/** A name with several addresses fails with one error for all of them. */
function networkCode(cause: unknown): string {
  const failure = cause as { code?: unknown; errors?: unknown[] } | null | undefined;
  if (typeof failure?.code === 'string') return failure.code;
  return failure?.errors?.[0] === undefined ? 'unknown' : networkCode(failure.errors[0]);
}
