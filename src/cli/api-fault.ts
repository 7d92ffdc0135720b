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
  const details: Record<string, unknown> = { status };
  if (problem !== null) details.problem = problem.code;
  if (problem?.problems !== undefined) details.problems = problem.problems;
  return new SonarError(codeOfStatus(status), messageOfStatus(status, problem, connection, what), {
    details,
  });
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

function messageOfStatus(
  status: number,
  problem: Problem | null,
  { apiUrl, tokenSource }: Connection,
  what: string,
): string {
  const said = problem?.detail || problem?.title || `status ${status} without a reason`;
  if (problem === null && status < 500)
    return `${apiUrl} does not answer as a Sonar API does (status ${status}); check the address`;
  if (status === 401)
    return `the API at ${apiUrl} refuses the token from ${tokenSource}: ${said}${wayToToken(tokenSource)}`;
  if (status === 403) return `the token from ${tokenSource} may not ${what}: ${said}`;
  if (status === 404 && /^there is no [A-Z]+ \//.test(said))
    return `the Sonar API at ${apiUrl} is of another version: ${said}`;
  if (isPassing(status))
    return `the API at ${apiUrl} cannot answer now (${status}): ${said}; try again, or see: sonar doctor`;
  if (status >= 500) return `the API at ${apiUrl} failed to ${what} (${status}): ${said}`;
  return said;
}

const wayToToken = (tokenSource: string): string =>
  tokenSource.endsWith('cli.json') ? '; or run "sonar up" again, which writes a new one' : '';

/** The fault of a request that got no answer; `details.network` has the system's code. */
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
