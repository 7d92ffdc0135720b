// Workers as people see them; what workers themselves call is in worker-routes.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { pageQuerySchema, workerListSchema } from '#sonar/contracts/scan-api.ts';
import { findHold } from '#sonar/stores/recovery.ts';
import { listWorkers } from '#sonar/stores/workers.ts';
import type { ApiParts } from './api-parts.ts';
import { page, readCursor } from './paging.ts';
import { viewer } from './route-access.ts';
import { workerView } from './views.ts';

export function fleetRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.get(
    '/v1/workers',
    { ...viewer, schema: { querystring: pageQuerySchema, response: { 200: workerListSchema } } },
    async (request) => {
      const { limit } = request.query;
      const after = readCursor(request.query.after) ?? '';
      const rows = await listWorkers(database, request.token.workspace_id, {
        after,
        limit: limit + 1,
        aliveWithinMs: parts.settings.SONAR_ALIVE_WITHIN_MS,
        heardWithinMs: 3_600_000,
      });
      const hold = await findHold(database);
      return {
        ...page(rows, limit, workerView, (row) => row.worker_name),
        hold: hold === undefined ? null : { until: hold.held_until, note: hold.held_note },
      };
    },
  );
}
