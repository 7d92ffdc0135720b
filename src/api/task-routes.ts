// The single commands of a scan.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { retriedSchema, taskListQuerySchema, taskListSchema, taskSchema } from '#sonar/contracts/scan-api.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { listTasks } from '#sonar/stores/task-views.ts';
import type { ApiParts } from './api-parts.ts';
import { scanOf, taskOf } from './lookup.ts';
import { cursorId, page } from './paging.ts';
import { retried } from './reopened.ts';
import { byId, operator, viewer } from './route-access.ts';
import { taskView } from './views.ts';

export function taskRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.post(
    '/v1/tasks/:id/retry',
    { ...operator, schema: { params: byId, response: { 200: retriedSchema } } },
    async (request) => {
      const task = await taskOf(database, request.token.workspace_id, request.params.id);
      return retried(parts, await retryTasks(parts, task.scan_id, task.task_id));
    },
  );

  app.get(
    '/v1/tasks/:id',
    { ...viewer, schema: { params: byId, response: { 200: taskSchema } } },
    async (request) => taskView(await taskOf(database, request.token.workspace_id, request.params.id)),
  );

  app.get(
    '/v1/tasks',
    { ...viewer, schema: { querystring: taskListQuerySchema, response: { 200: taskListSchema } } },
    async (request) => {
      const { scan: id, step, status, after, limit } = request.query;
      const scan = await scanOf(database, request.token.workspace_id, id);
      const rows = await listTasks(database, scan.scan_id, {
        step: step ?? null,
        status: status ?? null,
        after: cursorId(after),
        limit: limit + 1,
      });
      return page(rows, limit, taskView, (row) => row.task_id);
    },
  );
}
