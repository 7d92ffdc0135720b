// What tag workers call: registration, pulses and the callbacks of an attempt.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Step } from '#sonar/contracts/definition.ts';
import { dispatchKey } from '#sonar/contracts/names.ts';
import {
  type Disposition,
  inputsAnswerSchema,
  inputsRequestSchema,
  pulseAnswerSchema,
  pulseSchema,
  registrationAnswerSchema,
  registrationSchema,
  releaseAnswerSchema,
  releaseSchema,
  resultAnswerSchema,
  resultSchema,
  startedAnswerSchema,
  startedSchema,
  uploadsAnswerSchema,
  uploadsSchema,
} from '#sonar/contracts/worker-api.ts';
import { effectiveStep } from '#sonar/definition/live-definition.ts';
import { resultDigest } from '#sonar/domain/result-digest.ts';
import { acceptPulse } from '#sonar/flow/accept-pulse.ts';
import { acceptRelease } from '#sonar/flow/accept-release.ts';
import { acceptResult, acceptResults, type GivenResult, manifestFault } from '#sonar/flow/accept-result.ts';
import { acceptStarted, type GivenStart, startTask, startTasks } from '#sonar/flow/accept-started.ts';
import { grantInputs, grantUploads } from '#sonar/flow/grant-files.ts';
import { assertTokenCovers, registerWorker } from '#sonar/flow/register-worker.ts';
import { isSonarError, SonarError } from '#sonar/platform/errors.ts';
import { createGrouping } from '#sonar/platform/grouping.ts';
import { type AttemptRow, findAttempt } from '#sonar/stores/attempts.ts';
import { findIncarnation } from '#sonar/stores/workers.ts';
import type { ApiParts } from './api-parts.ts';
import { assertSigned } from './authentication.ts';

const byId = z.object({ id: z.uuid() });
const access = { config: { access: 'worker' as const } };

/** Callbacks that arrive together are committed together; more would make one transaction long. */
const group = { maxMembers: 64, lanes: 2, isUnknown: (error: unknown) => isSonarError(error, 'unreachable') };
/** A result with more files is a transaction of its own. */
const maxGroupedFiles = 64;

export function workerRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const accept = createGrouping<GivenResult, Disposition>({
    ...group,
    keyOf: ({ attempt }) => attempt.attempt_id,
    together: (members) => acceptResults(parts, members),
    alone: (member) => acceptResult(parts, member),
  });
  const start = createGrouping<GivenStart, boolean>({
    ...group,
    keyOf: ({ started }) => started.attemptId,
    together: (members) => startTasks(parts.database, members),
    alone: (member) => startTask(parts.database, member),
  });

  app.post(
    '/v1/workers',
    { ...access, schema: { body: registrationSchema, response: { 200: registrationAnswerSchema } } },
    (request) => registerWorker(parts, request.token, request.body),
  );

  app.post(
    '/v1/workers/:id/pulses',
    { ...access, schema: { params: byId, body: pulseSchema, response: { 200: pulseAnswerSchema } } },
    async (request) => {
      const pulse = request.body;
      const incarnation = await findIncarnation(parts.database, request.params.id);
      if (!incarnation)
        throw new SonarError(
          'not_found',
          `no worker is registered as incarnation ${request.params.id}; register again`,
        );
      assertSigned(request, parts.keys, 'incarnation', incarnation.key_id, incarnation.incarnation_id);
      if (pulse.incarnationId !== incarnation.incarnation_id || pulse.name !== incarnation.worker_name)
        throw new SonarError('forbidden', 'the pulse names another worker than it was signed by');
      if (incarnation.workspace_id !== request.token.workspace_id)
        throw new SonarError('forbidden', 'the worker belongs to another workspace');
      // What a pulse says is placed by: its tags must be the token's, like at the registration.
      assertTokenCovers(request.token, pulse);
      return acceptPulse(parts, pulse);
    },
  );

  app.post(
    '/v1/attempts/:id/started',
    { ...access, schema: { params: byId, body: startedSchema, response: { 200: startedAnswerSchema } } },
    async (request) => {
      const attempt = await signedAttempt(request, parts, request.body);
      if (!attempt)
        return {
          disposition: 'skip' as const,
          reason: 'the attempt is unknown',
          serverTime: new Date().toISOString(),
        };
      return acceptStarted({ ...parts, start }, attempt, await stepOf(parts, attempt), request.body);
    },
  );

  app.post(
    '/v1/attempts/:id/inputs',
    { ...access, schema: { params: byId, body: inputsRequestSchema, response: { 200: inputsAnswerSchema } } },
    async (request) => {
      const attempt = await runningAttempt(request, parts, request.body);
      return grantInputs(parts, attempt, await stepOf(parts, attempt), request.body);
    },
  );

  app.post(
    '/v1/attempts/:id/uploads',
    { ...access, schema: { params: byId, body: uploadsSchema, response: { 200: uploadsAnswerSchema } } },
    async (request) => {
      const attempt = await runningAttempt(request, parts, request.body);
      return grantUploads(parts, attempt, request.body, parts.settings.SONAR_OUTPUT_CAP_BYTES);
    },
  );

  app.post(
    '/v1/attempts/:id/result',
    {
      config: { ...access.config, quotesCommand: true },
      schema: { params: byId, body: resultSchema, response: { 200: resultAnswerSchema } },
    },
    async (request) => {
      const result = request.body;
      const attempt = await signedAttempt(request, parts, result);
      const serverTime = new Date().toISOString();
      if (!attempt) return { disposition: 'superseded' as const, serverTime };
      assertSameWorker(attempt, result);
      if (resultDigest(result) !== result.digest)
        throw new SonarError('invalid', 'the digest is not that of this result');
      const step = await stepOf(parts, attempt);
      const fault = manifestFault(step, result, parts.settings.SONAR_OUTPUT_CAP_BYTES);
      if (fault !== undefined) throw new SonarError('invalid', fault);
      const given = { attempt, step, result };
      const fewFiles = result.manifest.length <= maxGroupedFiles;
      const disposition = await (fewFiles ? accept(given) : acceptResult(parts, given));
      parts.waker.wake(attempt.scan_id);
      return { disposition, serverTime };
    },
  );

  app.post(
    '/v1/attempts/:id/release',
    { ...access, schema: { params: byId, body: releaseSchema, response: { 200: releaseAnswerSchema } } },
    async (request) => {
      const attempt = await signedAttempt(request, parts, request.body);
      if (!attempt) return { disposition: 'superseded' as const, serverTime: new Date().toISOString() };
      assertSameWorker(attempt, request.body);
      const answer = await acceptRelease(parts.database, attempt, request.body, parts.settings);
      parts.waker.wake(attempt.scan_id);
      return answer;
    },
  );
}

interface Identity {
  attemptId: string;
  dispatchKey: string;
  worker: string;
  incarnationId: string;
}

/** The attempt, once its signature and stable identity hold; undefined where there is no such attempt. */
async function signedAttempt(
  request: FastifyRequest<{ Params: { id: string } }>,
  parts: ApiParts,
  body: Identity,
): Promise<AttemptRow | undefined> {
  const attempt = await findAttempt(parts.database, request.params.id);
  if (!attempt) return undefined;
  assertSigned(request, parts.keys, 'attempt', attempt.key_id, attempt.attempt_id);
  if (
    body.attemptId !== attempt.attempt_id ||
    body.dispatchKey !== dispatchKey(attempt.scan_id, attempt.task_id, attempt.step)
  )
    throw new SonarError(
      'forbidden',
      'the body names another attempt or dispatch key than it was signed for',
    );
  if (request.token.workspace_id !== attempt.workspace_id)
    throw new SonarError('forbidden', 'the attempt belongs to another workspace');
  return attempt;
}

async function runningAttempt(
  request: FastifyRequest<{ Params: { id: string } }>,
  parts: ApiParts,
  body: Identity,
): Promise<AttemptRow> {
  const attempt = await signedAttempt(request, parts, body);
  if (!attempt) throw new SonarError('not_found', `there is no attempt ${request.params.id}`);
  assertSameWorker(attempt, body);
  if (attempt.ended_at !== null) throw new SonarError('conflict', 'the attempt is over');
  return attempt;
}

function assertSameWorker(attempt: AttemptRow, body: Identity): void {
  if (attempt.worker_name !== body.worker || attempt.incarnation_id !== body.incarnationId)
    throw new SonarError(
      'forbidden',
      `the attempt was not started by worker "${body.worker}" of this incarnation`,
    );
}

async function stepOf(parts: ApiParts, attempt: AttemptRow): Promise<Step> {
  const { compiled } = await parts.revisions.find(
    parts.database,
    attempt.workspace_id,
    attempt.definition_name,
    attempt.definition_revision,
  );
  const step = compiled.steps.find((candidate) => candidate.name === attempt.step);
  if (!step)
    throw new SonarError('internal', `definition ${attempt.definition_name} lost step ${attempt.step}`);
  return effectiveStep(step, attempt.pins);
}
