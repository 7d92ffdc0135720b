// The HTTP server: one instance, every route with its access, every fault as problem+json.
import swagger from '@fastify/swagger';
import fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { jsonSchemaTransform, serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import { healthSchema } from '#sonar/contracts/scan-api.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import type { Service } from '#sonar/platform/service.ts';
import type { ApiParts } from './api-parts.ts';
import { attemptRoutes } from './attempt-routes.ts';
import { createAuthentication } from './authentication.ts';
import { definitionRoutes } from './definition-routes.ts';
import { fleetRoutes } from './fleet-routes.ts';
import { assertStorable, badRequest, utf8Of } from './hostile-text.ts';
import { inventoryRoutes } from './inventory-routes.ts';
import { materialRoutes } from './material-routes.ts';
import { poisonRoutes } from './poison-routes.ts';
import { sendProblem } from './problem.ts';
import { scanRoutes } from './scan-routes.ts';
import { taskRoutes } from './task-routes.ts';
import { tokenRoutes } from './token-routes.ts';
import { workerRoutes } from './worker-routes.ts';

export interface ApiServer extends Service {
  /** Where it listens, once started. */
  readonly url: string;
}

// A start with a million lines of input fits; what is larger is a mistake or an attack.
const bodyLimitBytes = 32 * 1024 * 1024;
const requestTimeoutMs = 60_000;

/** `port` 0 takes a free one. */
export function createApiServer(parts: ApiParts, listen: { host: string; port: number }): ApiServer {
  let app: FastifyInstance | undefined;
  let url = '';
  return {
    name: 'api',
    get url() {
      return url;
    },
    async start() {
      app = await buildApp(parts);
      try {
        url = await app.listen(listen);
      } catch (error) {
        if ((error as { code?: string }).code !== 'EADDRINUSE') throw error;
        throw new SonarError(
          'configuration',
          `port ${listen.port} on ${listen.host} is in use; end what listens there or take another with --port`,
          { cause: error },
        );
      }
    },
    async stop() {
      await app?.close();
      app = undefined;
    },
  };
}

export async function buildApp(parts: ApiParts): Promise<FastifyInstance> {
  const app: FastifyInstance = fastify({
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: 'idle',
    loggerInstance: quieter(parts.log),
  });
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.decorateRequest('rawBody', '');
  app.decorateRequest('token');
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const text = utf8Of(body as Buffer);
    if (text === undefined) return done(badRequest('the body is not UTF-8'), undefined);
    request.rawBody = text;
    if (text === '') return done(null, undefined);
    return parse(request, text, done);
  });
  app.addHook('preValidation', assertStorable);
  app.setErrorHandler(sendProblem);
  app.setNotFoundHandler((request, reply) =>
    sendProblem(
      new SonarError('not_found', `there is no ${request.method} ${request.url.slice(0, 200)}`),
      request,
      reply,
    ),
  );
  const authenticate = createAuthentication(parts.database);
  app.addHook('onRequest', (request) => (request.is404 ? Promise.resolve() : authenticate(request)));
  await app.register(swagger, {
    openapi: {
      info: {
        title: 'Sonar',
        version: '1',
        description: 'Durable command-line scans over a fleet of disposable workers.',
      },
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      security: [{ token: [] }],
    },
    transform: jsonSchemaTransform,
  });
  app.get(
    '/health/live',
    { config: { access: 'open' }, schema: { response: { 200: healthSchema } } },
    () => ({
      status: 'ok' as const,
      checks: {},
    }),
  );
  app.get(
    '/health/ready',
    { config: { access: 'open' }, schema: { response: { 200: healthSchema, 503: healthSchema } } },
    async (_request, reply) => {
      const checks = await readiness(parts);
      const ok = Object.values(checks).every((check) => check === 'ok');
      return reply.status(ok ? 200 : 503).send({ status: ok ? 'ok' : 'unready', checks });
    },
  );
  definitionRoutes(app, parts);
  scanRoutes(app, parts);
  taskRoutes(app, parts);
  attemptRoutes(app, parts);
  inventoryRoutes(app, parts);
  poisonRoutes(app, parts);
  fleetRoutes(app, parts);
  tokenRoutes(app, parts);
  materialRoutes(app, parts);
  workerRoutes(app, parts);
  app.get('/v1/openapi.json', { config: { access: 'viewer' }, schema: { hide: true } }, () => app.swagger());
  return app;
}

/** Fastify tells every request at `info`; an operator who asked for less than `warn` gets less. */
const quieter = (log: Logger): FastifyBaseLogger =>
  log.isLevelEnabled('info') ? log.child({}, { level: 'warn' }) : log;

async function readiness(parts: ApiParts): Promise<Record<string, string>> {
  const checks = {
    postgresql: () => parts.database.check(),
    temporal: () => parts.temporal.check(),
    s3: () => parts.objects.check(),
  };
  return Object.fromEntries(
    await Promise.all(
      Object.entries(checks).map(
        async ([name, check]) =>
          [
            name,
            await check().then(
              () => 'ok',
              (error: unknown) => messageOf(error).slice(0, 200),
            ),
          ] as const,
      ),
    ),
  );
}
