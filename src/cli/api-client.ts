// The HTTP API as functions. Every answer is parsed; every fault is a SonarError that names the way out.
import type { z } from 'zod';
import type { Change } from '#sonar/contracts/changes.ts';
import {
  type DiffList,
  diffListSchema,
  type ImportRequest,
  importViewSchema,
  inventoryListSchema,
  recordTypeListSchema,
} from '#sonar/contracts/inventory-api.ts';
import {
  type PoisonItem,
  poisonItemSchema,
  poisonListSchema,
  repairedSchema,
} from '#sonar/contracts/poison-api.ts';
import {
  type CreateToken,
  confirmFilesAnswerSchema,
  createdTokenSchema,
  definitionListSchema,
  definitionSchema,
  deletedDefinitionSchema,
  filePlacesAnswerSchema,
  type PlanRequest,
  planSchema,
  problemSchema,
  retriedSchema,
  type StartScan,
  scanDetailSchema,
  scanListSchema,
  scanSchema,
  secretListSchema,
  secretSchema,
  taskListSchema,
  taskSchema,
  type UploadedFiles,
  type WorkerList,
  workerListSchema,
} from '#sonar/contracts/scan-api.ts';
import type { ScanStatus, TaskStatus } from '#sonar/contracts/states.ts';
import {
  type AttemptView,
  attemptListSchema,
  type OutputView,
  outputListSchema,
  outputPlaceSchema,
  scanEventListSchema,
  taskLogsSchema,
} from '#sonar/contracts/task-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { faultOfAnswer, faultOfSilence } from './api-fault.ts';
import type { Connection } from './connection.ts';
import { type Page, PagedList } from './paged-list.ts';

export interface ClientOptions {
  /** Of one request with its answer. */
  timeoutMs?: number;
  /** Ends requests under way. */
  signal?: AbortSignal;
}

export type ApiClient = ReturnType<typeof createApiClient>;

const defaultTimeoutMs = 30_000;
// The api reads a file for a while, and may have to pass over most of it first.
const importTimeoutMs = 180_000;

type Query = Record<string, string | number | readonly string[] | undefined>;

/** Of lists and exports of the inventory; times are ISO. */
export type InventoryQuery = {
  type?: string;
  scan?: string;
  definition?: string;
  contains?: string;
  field?: readonly string[];
  seenSince?: string;
  seenBefore?: string;
  newSince?: string;
  partial?: 'true' | 'false';
};
export type DiffQuery = { from?: string; to?: string; definition?: string; type?: string; change?: Change };
interface Call {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  /** For messages: "may not …", "failed to …". */
  what: string;
  body?: unknown;
  /** Where an answer may take longer than others. */
  timeoutMs?: number;
}

/** A client of one API with one token; it holds no state and needs no closing. */
export function createApiClient(connection: Connection, options: ClientOptions = {}) {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;

  async function ask<Answer>(call: Call, schema: z.ZodType<Answer>): Promise<Answer> {
    const { status, text } = await exchange(call);
    const value = parsedJson(text);
    if (status < 200 || status > 299)
      throw faultOfAnswer(status, problemSchema.safeParse(value).data ?? null, connection, call.what);
    const answer = schema.safeParse(value);
    if (answer.success) return answer.data;
    const [issue] = answer.error.issues;
    const where =
      value === undefined ? 'no JSON' : `${issue?.path.join('.') || 'the body'}: ${issue?.message}`;
    throw new SonarError(
      'internal',
      `${connection.apiUrl}${call.path} did not answer as a Sonar API of this version does (${where}); check the address and the versions`,
    );
  }

  async function exchange(call: Call): Promise<{ status: number; text: string }> {
    const waitMs = Math.max(timeoutMs, call.timeoutMs ?? 0);
    const limit = AbortSignal.timeout(waitMs);
    const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]);
    const headers: Record<string, string> = {
      accept: 'application/json, application/problem+json',
      authorization: `Bearer ${connection.token}`,
    };
    if (call.body !== undefined) headers['content-type'] = 'application/json';
    try {
      // A redirect is not followed: the token goes to the address that was named and nowhere else.
      const answer = await fetch(`${connection.apiUrl}${call.path}`, {
        method: call.method,
        headers,
        redirect: 'manual',
        signal,
        ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      });
      return { status: answer.status, text: await answer.text() };
    } catch (error) {
      options.signal?.throwIfAborted();
      throw faultOfSilence(error, connection, waitMs);
    }
  }

  const get = <Answer>(path: string, what: string, schema: z.ZodType<Answer>): Promise<Answer> =>
    ask({ method: 'GET', path, what }, schema);

  function list<Filter extends Query, Item, Whole extends Page<Item> = Page<Item>>(
    path: string,
    what: string,
    schema: z.ZodType<Whole>,
  ) {
    return new PagedList<Filter, Item, Whole>((filter, after, limit) =>
      get(`${path}${queryOf({ ...filter, after: after ?? undefined, limit })}`, what, schema),
    );
  }

  const change = (id: string, event: string, what: string) =>
    ask({ method: 'POST', path: `/v1/scans/${encodeURIComponent(id)}/${event}`, what }, scanSchema);

  return {
    connection,
    /** The name stands in the text. */
    applyDefinition: (source: string, files?: UploadedFiles) =>
      ask(
        {
          method: 'POST',
          path: '/v1/definitions',
          what: 'apply a definition',
          body: files === undefined ? { source } : { source, files },
        },
        definitionSchema,
      ),
    /** A dry run. */
    planDefinition: (body: PlanRequest) =>
      ask({ method: 'POST', path: '/v1/definitions/plan', what: 'plan a definition', body }, planSchema),
    deleteDefinition: (name: string) =>
      ask(
        {
          method: 'DELETE',
          path: `/v1/definitions/${encodeURIComponent(name)}`,
          what: 'delete a definition',
        },
        deletedDefinitionSchema,
      ),
    filePlaces: (files: { sha256: string; size: number }[]) =>
      ask(
        { method: 'POST', path: '/v1/files', what: 'store files', body: { files } },
        filePlacesAnswerSchema,
      ),
    confirmFiles: (files: { sha256: string; size: number; upload: string }[]) =>
      ask(
        { method: 'POST', path: '/v1/files/confirm', what: 'store files', body: { files } },
        confirmFilesAnswerSchema,
      ),
    setSecret: (name: string, value: string) =>
      ask({ method: 'POST', path: '/v1/secrets', what: 'set secrets', body: { name, value } }, secretSchema),
    secrets: list<Record<never, never>, z.infer<typeof secretListSchema>['items'][number]>(
      '/v1/secrets',
      'list secrets',
      secretListSchema,
    ),
    definitions: list<Record<never, never>, z.infer<typeof definitionSchema>>(
      '/v1/definitions',
      'list definitions',
      definitionListSchema,
    ),
    /** With a `clientKey` it may be sent again: the same key and body is the same scan. */
    startScan: (body: StartScan) =>
      ask({ method: 'POST', path: '/v1/scans', what: 'start a scan', body }, scanSchema),
    /** `id` may be `latest`. */
    scan: (id: string) => get(`/v1/scans/${encodeURIComponent(id)}`, 'read scans', scanDetailSchema),
    cancelScan: (id: string) => change(id, 'cancel', 'cancel a scan'),
    /** One that has ended; from then on it is not found. */
    deleteScan: (id: string) =>
      ask(
        { method: 'DELETE', path: `/v1/scans/${encodeURIComponent(id)}`, what: 'delete a scan' },
        scanSchema,
      ),
    /** Idempotent; what was dispatched goes on. */
    pauseScan: (id: string) => change(id, 'pause', 'pause a scan'),
    resumeScan: (id: string) => change(id, 'resume', 'resume a scan'),
    /** All Failed and Cancelled tasks. */
    retryScan: (id: string) =>
      ask(
        { method: 'POST', path: `/v1/scans/${encodeURIComponent(id)}/retry`, what: 'retry tasks' },
        retriedSchema,
      ),
    task: (id: string) => get(`/v1/tasks/${encodeURIComponent(id)}`, 'read tasks', taskSchema),
    taskAttempts: (id: string) =>
      list<Record<never, never>, AttemptView>(
        `/v1/tasks/${encodeURIComponent(id)}/attempts`,
        'read tasks',
        attemptListSchema,
      ),
    taskLogs: (id: string, attempt?: number) =>
      get(`/v1/tasks/${encodeURIComponent(id)}/logs${queryOf({ attempt })}`, 'read logs', taskLogsSchema),
    taskOutputs: (
      id: string,
      filter: { attempt?: number | undefined; output?: string | undefined },
      limit: number,
      after: string | null = null,
    ) =>
      list<typeof filter, OutputView>(
        `/v1/tasks/${encodeURIComponent(id)}/outputs`,
        'read outputs',
        outputListSchema,
      ).take(filter, limit, after),
    outputPlace: (id: string, file: { output: string; path: string; attempt: number }) =>
      get(
        `/v1/tasks/${encodeURIComponent(id)}/outputs/place${queryOf(file)}`,
        'read outputs',
        outputPlaceSchema,
      ),
    /** What happened since `after`; `next` goes on from there, now or later. */
    scanEvents: (id: string, after: string | null, limit: number) =>
      get(
        `/v1/scans/${encodeURIComponent(id)}/events${queryOf({ after: after ?? undefined, limit })}`,
        'read scans',
        scanEventListSchema,
      ),
    retryTask: (id: string) =>
      ask(
        { method: 'POST', path: `/v1/tasks/${encodeURIComponent(id)}/retry`, what: 'retry a task' },
        retriedSchema,
      ),
    scans: list<{ status?: ScanStatus }, z.infer<typeof scanSchema>>(
      '/v1/scans',
      'list scans',
      scanListSchema,
    ),
    tasks: list<
      { scan: string; step?: string; status?: TaskStatus },
      z.infer<typeof taskListSchema>['items'][number]
    >('/v1/tasks', 'list tasks', taskListSchema),
    inventory: list<
      InventoryQuery,
      z.infer<typeof inventoryListSchema>['items'][number],
      z.infer<typeof inventoryListSchema>
    >('/v1/inventory', 'read the inventory', inventoryListSchema),
    inventoryDiff: list<DiffQuery, DiffList['items'][number], DiffList>(
      '/v1/inventory/diff',
      'compare scans',
      diffListSchema,
    ),
    recordTypes: () => get('/v1/inventory/types', 'read the inventory', recordTypeListSchema),
    /** Asked again it goes on, until it is no longer `due`. */
    importRecords: (body: ImportRequest) =>
      ask(
        {
          method: 'POST',
          path: '/v1/inventory/imports',
          what: 'import records',
          body,
          timeoutMs: importTimeoutMs,
        },
        importViewSchema,
      ),
    workers: list<Record<never, never>, WorkerList['items'][number], WorkerList>(
      '/v1/workers',
      'list workers',
      workerListSchema,
    ),
    poisoned: list<{ scan?: string }, PoisonItem>('/v1/poison', 'list what is poisoned', poisonListSchema),
    poison: (id: string) =>
      get(`/v1/poison/${encodeURIComponent(id)}`, 'read what is poisoned', poisonItemSchema),
    repair: (id: string) =>
      ask(
        { method: 'POST', path: `/v1/poison/${encodeURIComponent(id)}/retry`, what: 'repair a result' },
        repairedSchema,
      ),
    repairAll: (scan: string) =>
      ask(
        { method: 'POST', path: '/v1/poison/retry', what: 'repair results', body: { scan } },
        repairedSchema,
      ),
    createToken: (body: CreateToken) =>
      ask({ method: 'POST', path: '/v1/tokens', what: 'create tokens', body }, createdTokenSchema),
  };
}

function queryOf(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value])
      if (one !== undefined) parameters.append(name, String(one));
  return `?${parameters.toString()}`;
}

/** Undefined when the text is no JSON. */
function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
