// What could not be done after so many tries, and how it is tried again.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { uuidPattern } from '#sonar/contracts/ids.ts';
import {
  type PoisonItem,
  poisonItemSchema,
  poisonListQuerySchema,
  poisonListSchema,
  repairAllSchema,
  repairedSchema,
} from '#sonar/contracts/poison-api.ts';
import { repairResult, repairResultsOf } from '#sonar/flow/repair-results.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { listPoisoned, type PoisonedRow, poisonedResult } from '#sonar/stores/poison.ts';
import type { ApiParts } from './api-parts.ts';
import { scanOf } from './lookup.ts';
import { cursorId, page } from './paging.ts';
import { startReopened } from './reopened.ts';
import { byId, operator, viewer } from './route-access.ts';
import { scanView } from './views.ts';

export function poisonRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.get(
    '/v1/poison',
    { ...viewer, schema: { querystring: poisonListQuerySchema, response: { 200: poisonListSchema } } },
    async (request) => {
      const { scan, after, limit } = request.query;
      const workspaceId = request.token.workspace_id;
      const scanId = scan === undefined ? null : (await scanOf(database, workspaceId, scan)).scan_id;
      const rows = await listPoisoned(database, workspaceId, {
        scanId,
        after: cursorId(after),
        limit: limit + 1,
      });
      return page(rows, limit, poisonView, (row) => row.finalization_id);
    },
  );

  app.get(
    '/v1/poison/:id',
    { ...viewer, schema: { params: byId, response: { 200: poisonItemSchema } } },
    async (request) => {
      const { id } = request.params;
      const row = uuidPattern.test(id)
        ? await poisonedResult(database, request.token.workspace_id, id)
        : undefined;
      if (row) return poisonView(row);
      throw new SonarError(
        'not_found',
        `there is nothing poisoned with the id "${id}", or not any more; list what is: sonar poison list`,
      );
    },
  );

  app.post(
    '/v1/poison/:id/retry',
    { ...operator, schema: { params: byId, response: { 200: repairedSchema } } },
    async (request) => reopened(await repairResult(parts, request.token.workspace_id, request.params.id)),
  );

  app.post(
    '/v1/poison/retry',
    { ...operator, schema: { body: repairAllSchema, response: { 200: repairedSchema } } },
    async (request) => {
      const scan = await scanOf(database, request.token.workspace_id, request.body.scan);
      return reopened(await repairResultsOf(parts, scan.scan_id));
    },
  );

  async function reopened({ scan, repaired }: Awaited<ReturnType<typeof repairResult>>) {
    await startReopened(parts, scan);
    return { scan: scanView(scan), repaired };
  }
}

function poisonView(row: PoisonedRow): PoisonItem {
  return {
    kind: 'finalization',
    id: row.finalization_id,
    scanId: row.scan_id,
    scan: row.scan_name,
    taskId: row.task_id,
    step: row.step,
    item: row.item,
    attemptId: row.attempt_id,
    worker: row.worker_name,
    taskStatus: row.task_status,
    error: row.error ?? 'unknown',
    sample: row.sample_file === null ? null : { file: row.sample_file, text: row.sample },
    size: row.size,
    attempts: row.attempts,
    poisonedAt: row.finished_at ?? new Date(0).toISOString(),
  };
}
