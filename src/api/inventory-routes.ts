// What all scans have found.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { inventoryListSchema, inventoryQuerySchema } from '#sonar/contracts/scan-api.ts';
import type { RecordState } from '#sonar/domain/inventory-fold.ts';
import { listInventory } from '#sonar/stores/inventory.ts';
import type { ApiParts } from './api-parts.ts';
import { scanOf } from './lookup.ts';
import { page, splitCursor } from './paging.ts';
import { viewer } from './route-access.ts';
import { inventoryItem } from './views.ts';

export function inventoryRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.get(
    '/v1/inventory',
    { ...viewer, schema: { querystring: inventoryQuerySchema, response: { 200: inventoryListSchema } } },
    async (request) => {
      const { type, scan, after, limit } = request.query;
      const [afterType = '', afterKey = ''] = splitCursor(after);
      const scanId =
        scan === undefined ? null : (await scanOf(database, request.token.workspace_id, scan)).scan_id;
      const rows = await listInventory<RecordState>(database, request.token.workspace_id, {
        type: type ?? null,
        scanId,
        afterType,
        afterKey,
        limit: limit + 1,
      });
      return page(rows, limit, inventoryItem, (row) => `${row.type} ${row.key}`);
    },
  );
}
