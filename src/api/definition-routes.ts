// Definitions and their revisions.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import {
  definitionBodySchema,
  definitionListSchema,
  definitionSchema,
  deletedDefinitionSchema,
  pageQuerySchema,
  planRequestSchema,
  planSchema,
  validationSchema,
} from '#sonar/contracts/scan-api.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { previewPlan } from '#sonar/flow/preview-plan.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { deleteDefinition, listDefinitions, type RevisionRow } from '#sonar/stores/definitions.ts';
import { scansOfDefinition } from '#sonar/stores/scans.ts';
import type { ApiParts } from './api-parts.ts';
import { page, readCursor } from './paging.ts';
import { operator, viewer } from './route-access.ts';

const byName = z.object({ name: z.string().max(63) });
const maxWoken = 1_000;

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
    async (request) => {
      const { workspace_id: workspaceId } = request.token;
      const applied = await applyDefinition(database, workspaceId, request.body.source, request.body.files);
      // Those beyond the bound see it at their next tick.
      for (const scan of await scansOfDefinition(database, workspaceId, applied.name, maxWoken))
        parts.waker.wake(scan.scan_id);
      return definitionView(applied);
    },
  );

  app.post(
    '/v1/definitions/plan',
    { ...operator, schema: { body: planRequestSchema, response: { 200: planSchema } } },
    (request) => previewPlan(parts, request.token.workspace_id, request.body),
  );

  app.delete(
    '/v1/definitions/:name',
    { ...operator, schema: { params: byName, response: { 200: deletedDefinitionSchema } } },
    async (request) => {
      const { name } = request.params;
      if (!(await deleteDefinition(database, request.token.workspace_id, name)))
        throw new SonarError(
          'not_found',
          `there is no definition "${name}"; list them with: sonar definition list`,
        );
      return { name, deleted: true as const };
    },
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
