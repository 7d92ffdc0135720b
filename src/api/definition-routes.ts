// Definitions and their revisions.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import {
  definitionBodySchema,
  definitionListSchema,
  definitionSchema,
  pageQuerySchema,
  validationSchema,
} from '#sonar/contracts/scan-api.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { listDefinitions, type RevisionRow } from '#sonar/stores/definitions.ts';
import type { ApiParts } from './api-parts.ts';
import { page, readCursor } from './paging.ts';
import { operator, viewer } from './route-access.ts';

export function definitionRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.post(
    '/v1/definitions/validate',
    { ...viewer, schema: { body: definitionBodySchema, response: { 200: validationSchema } } },
    (request) => {
      const compiled = compileDefinition(request.body.source);
      return compiled.ok
        ? { valid: true, name: compiled.definition.name, problems: [] }
        : { valid: false, name: null, problems: compiled.problems };
    },
  );

  app.post(
    '/v1/definitions',
    { ...operator, schema: { body: definitionBodySchema, response: { 200: definitionSchema } } },
    async (request) =>
      definitionView(
        await applyDefinition(database, request.token.workspace_id, request.body.source, request.body.files),
      ),
  );

  app.get(
    '/v1/definitions',
    { ...viewer, schema: { querystring: pageQuerySchema, response: { 200: definitionListSchema } } },
    async (request) => {
      const { limit } = request.query;
      const after = readCursor(request.query.after) ?? '';
      const rows = await listDefinitions(database, request.token.workspace_id, after, limit + 1);
      return page(rows, limit, definitionView, (row) => row.name);
    },
  );
}

function definitionView(row: RevisionRow) {
  return {
    name: row.name,
    revision: row.revision,
    sha256: row.source_sha256,
    steps: row.compiled.steps.map((step) => step.name),
    appliedAt: row.applied_at,
  };
}
