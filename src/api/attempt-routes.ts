// What became of a task, attempt by attempt: its streams, its files; and of a scan, event by event.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { uuidPattern } from '#sonar/contracts/ids.ts';
import { pageQuerySchema } from '#sonar/contracts/scan-api.ts';
import {
  attemptListSchema,
  attemptQuerySchema,
  outputListQuerySchema,
  outputListSchema,
  outputPlaceQuerySchema,
  outputPlaceSchema,
  scanEventKinds,
  scanEventListSchema,
  scanEventQuerySchema,
  taskLogsSchema,
} from '#sonar/contracts/task-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import {
  type AttemptViewRow,
  attemptOfTask,
  attemptsOfTask,
  outputsOfAttempt,
} from '#sonar/stores/attempt-views.ts';
import { scanEvents } from '#sonar/stores/scan-events.ts';
import type { ApiParts } from './api-parts.ts';
import { attemptView, eventView, logsView, outputView } from './attempt-views.ts';
import { scanOf, taskOf } from './lookup.ts';
import { cursorId, foreignCursor, page, readCursor, splitCursor } from './paging.ts';
import { byId, viewer } from './route-access.ts';

// Transactions are far shorter; what is shown is complete up to then.
const settleMs = 2_000;
const firstId = '00000000-0000-0000-0000-000000000000';

export function attemptRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.get(
    '/v1/tasks/:id/attempts',
    {
      ...viewer,
      schema: { params: byId, querystring: pageQuerySchema, response: { 200: attemptListSchema } },
    },
    async (request) => {
      const { after, limit } = request.query;
      const task = await taskOf(database, request.token.workspace_id, request.params.id);
      const rows = await attemptsOfTask(database, task.task_id, cursorId(after), limit + 1);
      return page(rows, limit, attemptView, (row) => row.attempt_id);
    },
  );

  app.get(
    '/v1/tasks/:id/logs',
    {
      ...viewer,
      schema: { params: byId, querystring: attemptQuerySchema, response: { 200: taskLogsSchema } },
    },
    async (request) => {
      const attempt = await attemptOf(request.token.workspace_id, request.params.id, request.query.attempt);
      // The manifest names it where a declared output took the stream.
      const all = { output: null, afterOutput: '', afterPath: '', limit: 10_000 };
      const files = attempt.files > 0 ? await outputsOfAttempt(database, attempt.attempt_id, all) : [];
      return logsView(
        attempt,
        files.find((file) => file.path === 'stdout'),
      );
    },
  );

  app.get(
    '/v1/tasks/:id/outputs',
    {
      ...viewer,
      schema: { params: byId, querystring: outputListQuerySchema, response: { 200: outputListSchema } },
    },
    async (request) => {
      const { attempt: number, output, after, limit } = request.query;
      const [afterOutput = '', afterPath = ''] = splitCursor(after);
      const attempt = await attemptOf(request.token.workspace_id, request.params.id, number);
      const rows = await outputsOfAttempt(database, attempt.attempt_id, {
        output: output ?? null,
        afterOutput,
        afterPath,
        limit: limit + 1,
      });
      return page(
        rows,
        limit,
        (row) => outputView(attempt, row),
        (row) => `${row.output} ${row.path}`,
      );
    },
  );

  app.get(
    '/v1/tasks/:id/outputs/place',
    {
      ...viewer,
      schema: { params: byId, querystring: outputPlaceQuerySchema, response: { 200: outputPlaceSchema } },
    },
    async (request) => {
      const { attempt: number, output, path } = request.query;
      const attempt = await attemptOf(request.token.workspace_id, request.params.id, number);
      const one = { output, afterOutput: '', afterPath: '', limit: 10_000 };
      const file = (await outputsOfAttempt(database, attempt.attempt_id, one)).find(
        (row) => row.path === path,
      );
      if (!file)
        throw new SonarError(
          'not_found',
          `attempt ${attempt.number} of task ${request.params.id} left no file "${path}" in output "${output}"; list them with: sonar task output ${request.params.id}`,
        );
      return { ...outputView(attempt, file), url: await parts.objects.presignGet(file.object_key) };
    },
  );

  app.get(
    '/v1/scans/:id/events',
    {
      ...viewer,
      schema: { params: byId, querystring: scanEventQuerySchema, response: { 200: scanEventListSchema } },
    },
    async (request) => {
      const scan = await scanOf(database, request.token.workspace_id, request.params.id);
      const from = eventCursor(request.query.after);
      const { limit } = request.query;
      const rows = await scanEvents(database, scan.scan_id, { ...from, settleMs, limit });
      const last = rows.at(-1);
      const place = last === undefined ? from : { at: last.place, kind: last.kind, id: last.id };
      return {
        items: rows.map(eventView),
        next: Buffer.from(`${place.at} ${place.kind} ${place.id}`).toString('base64url'),
      };
    },
  );

  async function attemptOf(
    workspaceId: string,
    id: string,
    number: number | undefined,
  ): Promise<AttemptViewRow> {
    const task = await taskOf(database, workspaceId, id);
    const attempt = await attemptOfTask(database, task.task_id, number ?? null);
    if (attempt) return attempt;
    throw new SonarError(
      'not_found',
      number === undefined
        ? `task ${id} is ${task.status} and has no attempt: nothing of it has run`
        : `task ${id} has no attempt ${number}; see them with: sonar task show ${id}`,
    );
  }
}

function eventCursor(after: string | undefined): { at: string; kind: string; id: string } {
  const cursor = readCursor(after);
  if (cursor === undefined) return { at: '1970-01-01T00:00:00.000000Z', kind: '', id: firstId };
  const [at = '', kind = '', id = ''] = cursor.split(' ');
  const known = kind === '' || (scanEventKinds as readonly string[]).includes(kind);
  if (known && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(at) && uuidPattern.test(id))
    return { at, kind, id };
  throw foreignCursor();
}
