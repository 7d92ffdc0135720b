// Secrets and files: what definitions use and do not hold.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import {
  confirmFilesAnswerSchema,
  confirmFilesSchema,
  filePlacesAnswerSchema,
  filePlacesSchema,
  pageQuerySchema,
  secretListSchema,
  secretSchema,
  setSecretSchema,
} from '#sonar/contracts/scan-api.ts';
import { setSecret } from '#sonar/flow/keep-secrets.ts';
import { confirmFiles, placesForFiles } from '#sonar/flow/store-files.ts';
import { listSecrets, type SecretRow } from '#sonar/stores/secrets.ts';
import type { ApiParts } from './api-parts.ts';
import { page, readCursor } from './paging.ts';

export function materialRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();

  app.post(
    '/v1/files',
    {
      config: { access: 'operator' },
      schema: { body: filePlacesSchema, response: { 200: filePlacesAnswerSchema } },
    },
    async (request) => ({
      files: await placesForFiles(parts, request.token.workspace_id, request.body.files),
    }),
  );

  app.post(
    '/v1/files/confirm',
    {
      config: { access: 'operator' },
      schema: { body: confirmFilesSchema, response: { 200: confirmFilesAnswerSchema } },
    },
    async (request) => ({
      stored: await confirmFiles(parts, request.token.workspace_id, request.body.files),
    }),
  );

  app.post(
    '/v1/secrets',
    {
      config: { access: 'admin' },
      schema: { body: setSecretSchema, response: { 200: secretSchema } },
    },
    async (request) => {
      const { token, body } = request;
      return secretView(await setSecret(parts, token.workspace_id, { ...body, updatedBy: token.name }));
    },
  );

  app.get(
    '/v1/secrets',
    {
      config: { access: 'viewer' },
      schema: { querystring: pageQuerySchema, response: { 200: secretListSchema } },
    },
    async (request) => {
      const { limit } = request.query;
      const after = readCursor(request.query.after) ?? '';
      const rows = await listSecrets(parts.database, request.token.workspace_id, after, limit + 1);
      return page(rows, limit, secretView, (row) => row.name);
    },
  );
}

const secretView = (row: SecretRow) => ({
  name: row.name,
  updatedAt: row.updated_at,
  updatedBy: row.updated_by,
});
