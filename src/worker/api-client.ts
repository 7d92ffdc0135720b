// What the worker asks of the api. Every call is one send with one outcome; who calls decides whether to try again.
import { z } from 'zod';
import {
  type InputsAnswer,
  type InputsRequest,
  inputsAnswerSchema,
  type Pulse,
  type PulseAnswer,
  pulseAnswerSchema,
  type Registration,
  type RegistrationAnswer,
  type Release,
  type ReleaseAnswer,
  type ResultAnswer,
  registrationAnswerSchema,
  releaseAnswerSchema,
  resultAnswerSchema,
  type Started,
  type StartedAnswer,
  startedAnswerSchema,
  type Uploads,
  type UploadsAnswer,
  uploadsAnswerSchema,
} from '#sonar/contracts/worker-api.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { signBody } from '#sonar/platform/signing.ts';
import { createPoster } from './http-post.ts';

export type ApiOutcome<Answer> =
  | { kind: 'answer'; value: Answer }
  /** Asking again gets the same. `code` is the problem's, null where somebody other than Sonar answered. */
  | { kind: 'refused'; status: number; code: string | null; detail: string }
  /** No disposition: network, timeout, 408, 425, 429, 5xx, or an answer that cannot be read (`answered`). */
  | { kind: 'unreachable'; reason: string; answered: boolean };

export interface ApiClient {
  register(body: Registration): Promise<ApiOutcome<RegistrationAnswer>>;
  pulse(secret: string, body: Pulse, timeoutMs: number): Promise<ApiOutcome<PulseAnswer>>;
  started(credential: string, body: Started): Promise<ApiOutcome<StartedAnswer>>;
  inputs(credential: string, body: InputsRequest): Promise<ApiOutcome<InputsAnswer>>;
  uploads(credential: string, body: Uploads): Promise<ApiOutcome<UploadsAnswer>>;
  /**
   * `body` is the stored text of a Result: what is sent again is the same to the byte.
   * @throws when the credential signs nothing, as all these do: schemas keep such ones out, a disk does not.
   */
  result(credential: string, attemptId: string, body: string): Promise<ApiOutcome<ResultAnswer>>;
  release(credential: string, body: Release): Promise<ApiOutcome<ReleaseAnswer>>;
  /** Closes the connections that are kept. */
  close(): void;
}

const callTimeoutMs = 15_000;
/** An answer is a few URLs a file at most; more is not the api. */
const maxAnswerBytes = 16 * 1024 * 1024;
const problemSchema = z.object({
  code: z.string(),
  title: z.string().optional(),
  detail: z.string().optional(),
  serverTime: z.string().optional(),
});
const passingStatuses = new Set([408, 425, 429]);

interface Call<Answer> {
  path: string;
  body: string;
  /** Null: the bearer token alone speaks for this call. */
  credential: string | null;
  schema: z.ZodType<Answer>;
  timeoutMs?: number;
}

export interface ApiClientOptions {
  apiUrl: string;
  token: string;
  log: Logger;
  /** Ends every call that is under way: for a worker that is told to go at once. */
  signal: AbortSignal;
  /** Called after each call that got Sonar's own answer. */
  answered(): void;
}

export function createApiClient(options: ApiClientOptions): ApiClient {
  const { apiUrl, token, log, signal } = options;
  const poster = createPoster();
  const base = apiUrl.replace(/\/+$/, '');
  /** Added to this machine's clock in signatures, after the api said that it differs. */
  let clockOffsetMs = 0;

  async function send<Answer>(call: Call<Answer>): Promise<ApiOutcome<Answer> | { kind: 'skew' }> {
    // Before anything that may fail by itself: a credential that signs nothing must not look like an api that is away.
    const signed =
      call.credential === null
        ? {}
        : signBody(call.credential, newId(), new Date(Date.now() + clockOffsetMs), call.body);
    let status: number;
    let text: string;
    try {
      ({ status, text } = await poster.post(
        base + call.path,
        { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...signed },
        call.body,
        { signal, timeoutMs: call.timeoutMs ?? callTimeoutMs, maxAnswerBytes },
      ));
    } catch (error) {
      return { kind: 'unreachable', reason: messageOf(error), answered: false };
    }
    const parsed = parseJson(text);
    if (status >= 200 && status < 300) {
      const answer = call.schema.safeParse(parsed);
      if (answer.success) return { kind: 'answer', value: answer.data };
      return {
        kind: 'unreachable',
        reason: `the answer (${status}) is not understood: ${z.prettifyError(answer.error)}`,
        answered: true,
      };
    }
    const problem = problemSchema.safeParse(parsed);
    if (status === 401 && problem.data?.code === 'clock_skew') {
      const serverTime = Date.parse(problem.data.serverTime ?? '');
      if (Number.isNaN(serverTime))
        return { kind: 'unreachable', reason: 'the api sees a clock skew but gives no time', answered: true };
      clockOffsetMs = serverTime - Date.now();
      log.warn(
        { operation: 'clock_skew', offsetMs: clockOffsetMs },
        "this machine's clock differs from the api's; set it right",
      );
      return { kind: 'skew' };
    }
    const detail = problem.data?.detail ?? problem.data?.title ?? `status ${status}`;
    // A proxy's 404 during a deployment is not Sonar's word, and must not cost a result.
    const final = status >= 400 && status < 500 && !passingStatuses.has(status);
    if (final && (problem.success || status === 401 || status === 403))
      return { kind: 'refused', status, code: problem.data?.code ?? null, detail };
    return { kind: 'unreachable', reason: `the api answered ${status}: ${detail}`, answered: true };
  }

  async function call<Answer>(request: Call<Answer>): Promise<ApiOutcome<Answer>> {
    const first = await send(request);
    const outcome = first.kind === 'skew' ? await send(request) : first;
    if (outcome.kind === 'answer' || outcome.kind === 'refused') options.answered();
    if (outcome.kind !== 'skew') return outcome;
    return { kind: 'unreachable', reason: 'the clocks still differ after one correction', answered: true };
  }

  const attempt = <Answer>(
    step: string,
    attemptId: string,
    credential: string,
    body: string,
    schema: z.ZodType<Answer>,
  ) => call({ path: `/v1/attempts/${attemptId}/${step}`, body, credential, schema });

  return {
    close: () => poster.close(),
    register: (body) =>
      call({
        path: '/v1/workers',
        body: JSON.stringify(body),
        credential: null,
        schema: registrationAnswerSchema,
      }),
    pulse: (secret, body, timeoutMs) =>
      call({
        path: `/v1/workers/${body.incarnationId}/pulses`,
        body: JSON.stringify(body),
        credential: secret,
        schema: pulseAnswerSchema,
        timeoutMs,
      }),
    started: (credential, body) =>
      attempt('started', body.attemptId, credential, JSON.stringify(body), startedAnswerSchema),
    inputs: (credential, body) =>
      attempt('inputs', body.attemptId, credential, JSON.stringify(body), inputsAnswerSchema),
    uploads: (credential, body) =>
      attempt('uploads', body.attemptId, credential, JSON.stringify(body), uploadsAnswerSchema),
    result: (credential, attemptId, body) =>
      attempt('result', attemptId, credential, body, resultAnswerSchema),
    release: (credential, body) =>
      attempt('release', body.attemptId, credential, JSON.stringify(body), releaseAnswerSchema),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
