// Faults to problem+json, in one place.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import type { Problem } from '#sonar/contracts/scan-api.ts';
import { type FaultCode, isSonarError, messageOf } from '#sonar/platform/errors.ts';

const statuses: Record<FaultCode, number> = {
  configuration: 500,
  usage: 400,
  unauthenticated: 401,
  clock_skew: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  invalid: 422,
  schema_version: 503,
  unreachable: 503,
  timed_out: 503,
  lease_lost: 503,
  internal: 500,
};

/** What a thrown fault is told as; what is nobody's business but ours is not told. */
function problemOf(error: unknown): Problem {
  if (isSonarError(error)) {
    const { problems } = error.details as { problems?: Problem['problems'] };
    return problem(statuses[error.code], error.code, error.message, {
      ...(problems ? { problems } : {}),
      ...(error.code === 'clock_skew' ? { serverTime: new Date().toISOString() } : {}),
    });
  }
  if (hasZodFastifySchemaValidationErrors(error)) {
    const problems = error.validation.map((issue) => ({
      path: `${error.validationContext ?? 'body'}${issue.instancePath.replaceAll('/', '.')}`.replace(
        /\.$/,
        '',
      ),
      message: issue.message ?? 'is not valid',
    }));
    return problem(
      400,
      'invalid_request',
      problems.map((issue) => `${issue.path}: ${issue.message}`).join('; '),
      { problems },
    );
  }
  // PostgreSQL's data exceptions and limits: the same request would fail for ever.
  const sqlState = (error as { code?: unknown } | null)?.code;
  if (typeof sqlState === 'string' && /^(22|54)[0-9A-Z]{3}$/.test(sqlState))
    return problem(422, 'invalid', `the database cannot hold a value of this request: ${messageOf(error)}`);
  const status = (error as Partial<FastifyError> | null)?.statusCode;
  if (status !== undefined && status >= 400 && status < 500)
    return problem(status, 'invalid_request', messageOf(error));
  return problem(500, 'internal', 'an internal fault; the log has it under this request id');
}

function problem(status: number, code: string, detail: string, more: Partial<Problem> = {}): Problem {
  return { type: 'about:blank', title: code.replaceAll('_', ' '), status, code, detail, ...more };
}

export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const answer = problemOf(error);
  if (answer.status >= 500)
    request.log.error({
      operation: 'request_failed',
      url: request.routeOptions.url,
      error: messageOf(error),
      stack: (error as Error).stack,
    });
  return reply
    .status(answer.status)
    .header('content-type', 'application/problem+json')
    .send(JSON.stringify(answer));
}
