// Scans: start, see, hold, end, try again.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import {
  retriedSchema,
  scanDetailSchema,
  scanListQuerySchema,
  scanListSchema,
  scanSchema,
  startScanSchema,
} from '#sonar/contracts/scan-api.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { deleteScan } from '#sonar/flow/delete-scan.ts';
import { pauseScan } from '#sonar/flow/pause-scan.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { startScan } from '#sonar/flow/start-scan.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { listScans } from '#sonar/stores/scans.ts';
import type { ApiParts } from './api-parts.ts';
import { scanOf } from './lookup.ts';
import { cursorId, page } from './paging.ts';
import { retried } from './reopened.ts';
import { byId, operator, viewer } from './route-access.ts';
import { scanDetail, scanView } from './views.ts';

export function scanRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.post(
    '/v1/scans',
    { ...operator, schema: { body: startScanSchema, response: { 200: scanSchema, 201: scanSchema } } },
    async (request, reply) => {
      const { scan, created } = await startScan(database, request.token.workspace_id, request.body);
      if (isScanOpen(scan.status)) {
        // The scan is committed: should Temporal be away, maintenance starts its workflow later.
        await parts.temporal
          .startScan({ scanId: scan.scan_id, name: scan.name, definition: scan.definition_name })
          .catch((error: unknown) =>
            parts.log.warn({
              operation: 'scan_workflow_not_started',
              scanId: scan.scan_id,
              error: messageOf(error),
            }),
          );
      }
      return reply.status(created ? 201 : 200).send(scanView(scan));
    },
  );

  app.get(
    '/v1/scans',
    { ...viewer, schema: { querystring: scanListQuerySchema, response: { 200: scanListSchema } } },
    async (request) => {
      const { after, limit, status } = request.query;
      const rows = await listScans(database, request.token.workspace_id, {
        status: status ?? null,
        after: cursorId(after),
        limit: limit + 1,
      });
      return page(rows, limit, scanView, (row) => row.scan_id);
    },
  );

  app.get(
    '/v1/scans/:id',
    { ...viewer, schema: { params: byId, response: { 200: scanDetailSchema } } },
    async (request) =>
      scanDetail(
        database,
        parts.revisions,
        await scanOf(database, request.token.workspace_id, request.params.id),
      ),
  );

  app.post(
    '/v1/scans/:id/cancel',
    { ...operator, schema: { params: byId, response: { 200: scanSchema } } },
    async (request) => {
      const scan = await scanOf(database, request.token.workspace_id, request.params.id);
      const cancelled = await cancelScan(
        database,
        scan.scan_id,
        `cancelled by token "${request.token.name}"`,
      );
      parts.waker.wake(scan.scan_id);
      return scanView(cancelled);
    },
  );

  app.delete(
    '/v1/scans/:id',
    { ...operator, schema: { params: byId, response: { 202: scanSchema } } },
    async (request, reply) => {
      const scan = await scanOf(database, request.token.workspace_id, request.params.id);
      const deleted = await deleteScan(database, scan.scan_id);
      parts.log.info({ operation: 'scan_delete_asked', scanId: scan.scan_id, by: request.token.name });
      return reply.status(202).send(scanView(deleted));
    },
  );

  for (const event of ['pause', 'resume'] as const)
    app.post(
      `/v1/scans/:id/${event}`,
      { ...operator, schema: { params: byId, response: { 200: scanSchema } } },
      async (request) => {
        const scan = await scanOf(database, request.token.workspace_id, request.params.id);
        const changed = await pauseScan(database, scan.scan_id, event);
        parts.waker.wake(scan.scan_id);
        return scanView(changed);
      },
    );

  app.post(
    '/v1/scans/:id/retry',
    { ...operator, schema: { params: byId, response: { 200: retriedSchema } } },
    async (request) => {
      const scan = await scanOf(database, request.token.workspace_id, request.params.id);
      return retried(parts, await retryTasks(parts, scan.scan_id, null));
    },
  );
}
