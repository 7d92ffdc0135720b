// Definitions, scans, tasks, inventory, workers and tokens, for people and backends.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type ScanId, uuidPattern } from '#sonar/contracts/ids.ts';
import {
  createdTokenSchema,
  createTokenSchema,
  definitionBodySchema,
  definitionListSchema,
  definitionSchema,
  inventoryListSchema,
  inventoryQuerySchema,
  pageQuerySchema,
  retriedSchema,
  scanDetailSchema,
  scanListQuerySchema,
  scanListSchema,
  scanSchema,
  startScanSchema,
  taskListQuerySchema,
  taskListSchema,
  taskSchema,
  validationSchema,
  workerListSchema,
} from '#sonar/contracts/scan-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import type { RecordState } from '#sonar/domain/inventory-fold.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { createToken } from '#sonar/flow/create-token.ts';
import { pauseScan } from '#sonar/flow/pause-scan.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { startScan } from '#sonar/flow/start-scan.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import { listDefinitions, type RevisionRow } from '#sonar/stores/definitions.ts';
import { listInventory } from '#sonar/stores/inventory.ts';
import { findScan, listScans, type ScanRow } from '#sonar/stores/scans.ts';
import { findTask, listTasks, type TaskViewRow } from '#sonar/stores/task-views.ts';
import { listWorkers } from '#sonar/stores/workers.ts';
import type { ApiParts } from './api-parts.ts';
import { cursorId, page, readCursor, splitCursor } from './paging.ts';
import { inventoryItem, scanDetail, scanView, taskView, workerView } from './views.ts';

const viewer = { config: { access: 'viewer' as const } };
const operator = { config: { access: 'operator' as const } };
const admin = { config: { access: 'admin' as const } };
const byId = z.object({ id: z.string().max(64) });

export function scanRoutes(instance: FastifyInstance, parts: ApiParts): void {
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
      scanDetail(database, await scanOf(database, request.token.workspace_id, request.params.id)),
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
      return retried(parts, await retryTasks(database, scan.scan_id, null));
    },
  );

  app.post(
    '/v1/tasks/:id/retry',
    { ...operator, schema: { params: byId, response: { 200: retriedSchema } } },
    async (request) => {
      const task = await taskOf(database, request.token.workspace_id, request.params.id);
      return retried(parts, await retryTasks(database, task.scan_id, task.task_id));
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
      return page(rows, limit, workerView, (row) => row.worker_name);
    },
  );

  app.post(
    '/v1/tokens',
    { ...admin, schema: { body: createTokenSchema, response: { 201: createdTokenSchema } } },
    async (request, reply) =>
      reply.status(201).send(await createToken(database, request.token.workspace_id, request.body)),
  );
}

/** The commit comes first: a workflow that has ended is started again and finds the scan open. */
async function retried(parts: ApiParts, { scan, retried: tasks }: { scan: ScanRow; retried: number }) {
  await parts.temporal
    .wakeOrStartScan({ scanId: scan.scan_id, name: scan.name, definition: scan.definition_name })
    .catch((error: unknown) =>
      parts.log.warn({
        operation: 'scan_workflow_not_started',
        scanId: scan.scan_id,
        error: messageOf(error),
      }),
    );
  return { scan: scanView(scan), retried: tasks };
}

/** @throws SonarError `not_found` */
async function taskOf(db: Db, workspaceId: string, id: string): Promise<TaskViewRow> {
  const task = uuidPattern.test(id) ? await findTask(db, workspaceId, id) : undefined;
  if (task) return task;
  throw new SonarError(
    'not_found',
    `there is no task "${id}"; list them with: sonar task list --scan latest`,
  );
}

/** @throws SonarError `not_found`; `latest` is the scan that was started last. */
async function scanOf(db: Db, workspaceId: string, id: string): Promise<ScanRow> {
  const scan =
    id === 'latest'
      ? (await listScans(db, workspaceId, { status: null, after: null, limit: 1 }))[0]
      : uuidPattern.test(id)
        ? await findScan(db, id as ScanId)
        : undefined;
  if (scan?.workspace_id === workspaceId) return scan;
  throw new SonarError(
    'not_found',
    id === 'latest'
      ? 'there is no scan; start one with: sonar scan start'
      : `there is no scan "${id}"; list them with: sonar scan list`,
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
