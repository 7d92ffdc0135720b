// Who may ask.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { createdTokenSchema, createTokenSchema } from '#sonar/contracts/scan-api.ts';
import { createToken } from '#sonar/flow/create-token.ts';
import type { ApiParts } from './api-parts.ts';
import { admin } from './route-access.ts';

export function tokenRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.post(
    '/v1/tokens',
    { ...admin, schema: { body: createTokenSchema, response: { 201: createdTokenSchema } } },
    async (request, reply) =>
      reply.status(201).send(await createToken(database, request.token.workspace_id, request.body)),
  );
}
