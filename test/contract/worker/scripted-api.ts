// The api and the object store of a test: believes nothing that is not signed, keeps what it saw, and answers as the
// design says unless a script says otherwise.
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { z } from 'zod';
import {
  inputsRequestSchema,
  pulseSchema,
  type Result,
  registrationSchema,
  releaseSchema,
  resultSchema,
  startedSchema,
  uploadsSchema,
} from '#sonar/contracts/worker-api.ts';
import { resultDigest } from '#sonar/domain/result-digest.ts';
import { verifyBody } from '#sonar/platform/signing.ts';
import type { Watch } from './watch.ts';

const schemas = {
  register: registrationSchema,
  pulse: pulseSchema,
  started: startedSchema,
  inputs: inputsRequestSchema,
  uploads: uploadsSchema,
  result: resultSchema,
  release: releaseSchema,
} as const;
export type Step = keyof typeof schemas;
type BodyOf<S extends Step> = z.infer<(typeof schemas)[S]>;
/** `hang`: no answer. `cut`: the connection breaks. */
export type Reply = { status: number; body: unknown } | 'hang' | 'cut';
export type Call = { [S in Step]: { step: S; body: BodyOf<S>; incarnationId: string } }[Step];
type Script = { [S in Step]?: (body: BodyOf<S>, count: number) => Reply | undefined };
const skewToleranceMs = 60_000;
interface StoredInput {
  files: { path: string; size: number; sha256: string; content: Buffer | null }[];
}

export interface ScriptedApi extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  readonly calls: Call[];
  /** Unsigned, badly signed or malformed calls; a test ends with none, unless it is about them. */
  readonly violations: string[];
  /** Overrides answers, a step each; undefined goes on as usual. Applied after the checks. */
  readonly script: Script;
  readonly pulse: { cancel: string[]; superseded: string[]; replaced: boolean };
  readonly objects: Map<string, Buffer>;
  /** Overrides answers of the object store. */
  store: ((request: IncomingMessage, count: number) => Reply | undefined) | undefined;
  readonly storeRequests: string[];
  readonly results: Map<string, Result>;
  /** The api's clock minus the worker's; below 5 minutes. */
  clockOffsetMs: number;
  pulseEveryMs: number;
  credential(attemptId: string): string;
  addInput(attemptId: string, name: string, files: Record<string, string | Buffer>): StoredInput;
  of<S extends Step>(step: S): BodyOf<S>[];
  readonly watch: Watch;
}

const problem = (status: number, code: string, more: object = {}): Reply => ({
  status,
  body: { type: 'about:blank', title: code, code, detail: `scripted ${code}`, ...more },
});

export { problem };

const ok = (body: object): Reply => ({
  status: 200,
  body: { serverTime: new Date().toISOString(), ...body },
});
const sha = (content: Buffer) => createHash('sha256').update(content).digest('hex');

export async function startScriptedApi(watch: Watch): Promise<ScriptedApi> {
  const calls: Call[] = [];
  const violations: string[] = [];
  const credentials = new Map<string, string>();
  const secrets = new Map<string, string>();
  const starts = new Map<string, string>();
  const inputs = new Map<string, StoredInput>();
  const objects = new Map<string, Buffer>();
  const results = new Map<string, Result>();
  const storeRequests: string[] = [];
  let generation = 0;

  const answers: { [S in Step]: (body: BodyOf<S>) => Reply } = {
    register: ({ incarnationId }) => {
      const secret = randomBytes(32).toString('base64');
      secrets.set(incarnationId, secret);
      return ok({ secret, pulseEveryMs: api.pulseEveryMs });
    },
    pulse: () => ok({ ...api.pulse }),
    started: ({ attemptId, deliveryId }) => {
      const first = starts.get(attemptId) ?? deliveryId;
      starts.set(attemptId, first);
      if (first === deliveryId && !results.has(attemptId)) return ok({ disposition: 'run' });
      return ok({ disposition: 'skip', reason: 'another delivery has it' });
    },
    inputs: ({ attemptId, input, after }) => {
      const stored = inputs.get(`${attemptId}/${input}`);
      if (stored === undefined) return problem(404, 'not_found');
      generation += 1;
      const from = after === null ? 0 : Number(after);
      const page = stored.files.slice(from, from + 2);
      return ok({
        files: page.map(({ path, size, sha256 }, index) => ({
          path,
          size,
          sha256,
          url: `${api.url}/inputs/${attemptId}/${input}/${from + index}?generation=${generation}`,
        })),
        next: from + 2 < stored.files.length ? String(from + 2) : null,
      });
    },
    uploads: ({ attemptId, files }) => {
      generation += 1;
      return ok({
        files: files.map(({ size, sha256 }) => ({
          url: `${api.url}/objects/${attemptId}/${sha256}?size=${size}&generation=${generation}`,
          headers: { 'if-none-match': '*' },
        })),
      });
    },
    result: (body) => {
      const accepted = results.get(body.attemptId);
      if (accepted === undefined) results.set(body.attemptId, body);
      if (accepted === undefined) return ok({ disposition: 'accepted' });
      return ok({ disposition: accepted.digest === body.digest ? 'duplicate' : 'conflict' });
    },
    release: () => ok({ disposition: 'accepted' }),
  };

  function answer<S extends Step>(step: S, text: string, request: IncomingMessage): Reply {
    if (request.headers.authorization !== `Bearer ${api.token}`) {
      violations.push(`${step}: no token`);
      return problem(401, 'unauthenticated');
    }
    const parsed = schemas[step].safeParse(JSON.parse(text)) as z.ZodSafeParseResult<BodyOf<S>>;
    if (!parsed.success) {
      violations.push(`${step}: ${parsed.error.message}`);
      return problem(400, 'invalid');
    }
    const body = parsed.data;
    const ids = body as { attemptId?: string; incarnationId: string };
    if (step !== 'register') {
      const key = step === 'pulse' ? secrets.get(ids.incarnationId) : credentials.get(ids.attemptId ?? '');
      const now = Date.now() + api.clockOffsetMs;
      // Stricter than the library's own tolerance, which looks at the real clock: offsets stay below that.
      if (Math.abs(Number(request.headers['webhook-timestamp']) * 1000 - now) > skewToleranceMs)
        return problem(401, 'clock_skew', { serverTime: new Date(now).toISOString() });
      const verified = key === undefined ? 'invalid' : verifyBody(key, request.headers, text, new Date());
      if (verified !== 'valid') {
        violations.push(`${step}: signature`);
        return problem(401, 'invalid_signature');
      }
    }
    if (step === 'result' && resultDigest(body as Result) !== (body as Result).digest)
      violations.push('result: digest');
    calls.push({ step, body, incarnationId: ids.incarnationId } as Call);
    return api.script[step]?.(body, calls.filter((call) => call.step === step).length) ?? answers[step](body);
  }

  function storeAnswer(path: string, request: IncomingMessage, content: Buffer): Reply {
    storeRequests.push(`${request.method} ${path}`);
    const scripted = api.store?.(request, storeRequests.length);
    if (scripted !== undefined) return scripted;
    const url = new URL(path, api.url);
    if (request.method === 'GET') {
      const [, , attemptId, input, index] = url.pathname.split('/');
      const file = inputs.get(`${attemptId}/${input}`)?.files[Number(index)];
      return file?.content == null ? { status: 404, body: '' } : { status: 200, body: file.content };
    }
    const key = url.pathname.slice('/objects/'.length);
    if (request.headers['content-length'] !== url.searchParams.get('size'))
      return { status: 403, body: 'length' };
    if (request.headers['if-none-match'] !== '*') return { status: 403, body: 'condition' };
    if (objects.has(key)) return { status: 412, body: 'there' };
    if (!key.endsWith(sha(content))) return { status: 400, body: 'BadDigest' };
    objects.set(key, content);
    return { status: 200, body: '' };
  }

  function stepOf(path: string): Step | null {
    if (path === '/v1/workers') return 'register';
    if (/^\/v1\/workers\/[0-9a-f-]+\/pulses$/.test(path)) return 'pulse';
    const step = /^\/v1\/attempts\/[0-9a-f-]+\/(started|inputs|uploads|result|release)$/.exec(path)?.[1];
    return (step as Step | undefined) ?? null;
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const content = Buffer.concat(chunks);
    const path = request.url ?? '';
    const step = stepOf(path);
    const reply =
      step === null ? storeAnswer(path, request, content) : answer(step, content.toString(), request);
    watch.changed();
    if (reply === 'hang') return;
    if (reply === 'cut') {
      request.socket.destroy();
      return;
    }
    response.statusCode = reply.status;
    response.end(
      Buffer.isBuffer(reply.body) || typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body),
    );
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      violations.push(String(error));
      response.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const api: ScriptedApi = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: randomBytes(16).toString('hex'),
    calls,
    violations,
    script: {},
    pulse: { cancel: [], superseded: [], replaced: false },
    objects,
    store: undefined,
    storeRequests,
    results,
    clockOffsetMs: 0,
    pulseEveryMs: 100,
    credential(attemptId) {
      const credential = credentials.get(attemptId) ?? randomBytes(32).toString('base64');
      credentials.set(attemptId, credential);
      return credential;
    },
    addInput(attemptId, name, files) {
      const stored = {
        files: Object.entries(files).map(([path, text]) => {
          const content = Buffer.from(text);
          return { path, content, size: content.length, sha256: sha(content) };
        }),
      };
      inputs.set(`${attemptId}/${name}`, stored);
      return stored;
    },
    of: (step) => calls.filter((call) => call.step === step).map((call) => call.body as never),
    watch,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return api;
}
