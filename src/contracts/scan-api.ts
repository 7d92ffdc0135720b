// The HTTP API for people and backends, under `/v1`. Every route takes `Authorization: Bearer TOKEN`;
// faults are problem+json with a snake_case `code`; lists are `{items, next}`, `next` goes into `?after=`.
import { z } from 'zod';
import { namePattern } from './names.ts';
import { recoveryRules, scanStatuses, stepStates, taskStatuses } from './states.ts';

export const time = z.iso.datetime();
export const count = z.int().min(0);
export const listOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), next: z.string().nullable() });

export const pageQuerySchema = z.object({
  /** `next` of the page before; the longest is an inventory key of 512 bytes in base64. */
  after: z.string().max(1024).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});

export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.string(),
  detail: z.string(),
  /** Of an invalid definition or body: every fault at once. */
  problems: z
    .array(
      z.object({
        path: z.string(),
        line: z.int().optional(),
        column: z.int().optional(),
        message: z.string(),
        hint: z.string().nullable().optional(),
      }),
    )
    .optional(),
  serverTime: z.string().optional(),
});
export type Problem = z.infer<typeof problemSchema>;

/** `POST /v1/definitions/validate` and `POST /v1/definitions` take the YAML text, which holds the name. */
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** What `files` of a definition hold: files that were stored before by `POST /v1/files`. */
export const uploadedFilesSchema = z.record(
  z.string().max(63),
  z.strictObject({
    kind: z.enum(['file', 'directory']),
    /** Of a directory, paths below it; of a file, its name. */
    entries: z.array(z.strictObject({ path: z.string().min(1).max(1024), sha256 })).max(100_000),
  }),
);
export type UploadedFiles = z.infer<typeof uploadedFilesSchema>;
export const definitionBodySchema = z.strictObject({
  source: z.string().max(1_048_576),
  files: uploadedFilesSchema.optional(),
});

const fileClaim = { sha256, size: z.int().min(0) };
/** `POST /v1/files`: places for those that are not stored yet; then PUT them and confirm. */
export const filePlacesSchema = z.strictObject({
  files: z.array(z.strictObject(fileClaim)).min(1).max(100),
});
export const filePlacesAnswerSchema = z.object({
  /** In the order asked; null: it is stored already. PUT with exactly these headers. */
  files: z.array(
    z.object({ upload: z.uuid(), url: z.string(), headers: z.record(z.string(), z.string()) }).nullable(),
  ),
});
/** `POST /v1/files/confirm`: what was put is read, and stored when it is what was announced. */
export const confirmFilesSchema = z.strictObject({
  files: z
    .array(z.strictObject({ ...fileClaim, upload: z.uuid() }))
    .min(1)
    .max(100),
});
export const confirmFilesAnswerSchema = z.object({ stored: count });
export const validationSchema = z.object({
  valid: z.boolean(),
  name: z.string().nullable(),
  problems: z.array(
    z.object({
      path: z.string(),
      line: z.int(),
      column: z.int(),
      message: z.string(),
      hint: z.string().nullable(),
    }),
  ),
});
export const definitionSchema = z.object({
  name: z.string(),
  revision: z.int(),
  sha256: z.string(),
  steps: z.array(z.string()),
  appliedAt: time,
});
/** `DELETE /v1/definitions/{name}`: no new scans; those that run keep its last revision. */
export const deletedDefinitionSchema = z.object({ name: z.string(), deleted: z.literal(true) });
export const definitionListSchema = listOf(definitionSchema);

export const scopeSchema = z.strictObject({
  allow: z.array(z.string().min(1).max(512)).max(100_000),
  deny: z.array(z.string().min(1).max(512)).max(100_000).default([]),
});

/** `POST /v1/scans`; 201 for a new scan, 200 with the same body again for the same `clientKey`. */
export const startScanSchema = z.strictObject({
  definition: z.string().min(1).max(63),
  /** Shown to people; the definition's name unless given. */
  name: z.string().min(1).max(200).optional(),
  /** Makes the start idempotent: the same key and body is the same scan, another body is a conflict. */
  clientKey: z.string().min(1).max(200).optional(),
  /** Lists as arrays or as text with one item a line; scalars as their text. */
  inputs: z
    .record(
      z.string(),
      z.union([
        z.string(),
        z.array(z.string()),
        z.number(),
        z.boolean(),
        /** Of type `file`, or of a list type (its lines): what was stored by `POST /v1/files`. */
        z.strictObject({ sha256 }),
      ]),
    )
    .default({}),
  /** Needed unless the definition has one; no scope at all is an error. */
  scope: scopeSchema.optional(),
  /** Freezes the scan on the definition's revision of now. */
  pin: z.boolean().default(false),
});
export type StartScan = z.input<typeof startScanSchema>;

/**
 * `POST /v1/definitions/plan`: what a scan would make, as far as it can be known before a command has run. Nothing is
 * written.
 */
export const planRequestSchema = z.strictObject({
  /** Either a definition that was applied, */
  definition: z.string().min(1).max(63).optional(),
  /** or the text of one. */
  source: z.string().max(1_048_576).optional(),
  inputs: startScanSchema.shape.inputs,
  scope: scopeSchema.optional(),
  /** Tasks and refusals that are shown of each step; all are counted. */
  limit: z.int().min(0).max(1000).default(5),
});
export type PlanRequest = z.input<typeof planRequestSchema>;
export const plannedStepSchema = z.object({
  step: z.string(),
  tags: z.array(z.string()),
  /** Empty: all is known now. Else outputs and steps that its tasks depend on. */
  dependsOn: z.array(z.string()),
  tasks: count,
  /** One task without a command: there is nothing to do. */
  noWork: z.boolean(),
  /** Items and lines that the scope keeps out, or that do not parse; no tasks are made of them. */
  refused: count,
  refusals: z.array(z.string()),
  /** Of the tasks, those that would be Failed (`item_refused`). */
  failing: count,
  failures: z.array(z.object({ item: z.json().nullable(), reason: z.string() })),
  /** The first ones; files stand as they are written: `${in.hosts}`. */
  samples: z.array(
    z.object({
      item: z.json().nullable(),
      command: z.array(z.string()),
      stdin: z.string().nullable(),
      env: z.record(z.string(), z.string()),
    }),
  ),
  /** What would hold its tasks up now: secrets, workers. */
  notes: z.array(z.string()),
  /** False: there was more than could be counted in time; the counts are of what was looked at. */
  counted: z.boolean(),
});
export type PlannedStep = z.infer<typeof plannedStepSchema>;
export const planSchema = z.object({
  definition: z.string(),
  /** Null: of a text that was not applied. */
  revision: z.int().nullable(),
  scope: scopeSchema,
  tasks: count,
  steps: z.array(plannedStepSchema),
});
export type PlanPreview = z.infer<typeof planSchema>;

export const stepViewSchema = z.object({
  step: z.string(),
  state: z.enum(stepStates),
  /** The newest revision that the scan has taken of the step; null: none yet, `note` says why. */
  revision: z.int().nullable(),
  /** No longer in the definition: what was not dispatched is cancelled, and nothing more comes. */
  removed: z.boolean(),
  tags: z.array(z.string()),
  counts: z.object({
    pending: count,
    published: count,
    running: count,
    completed: count,
    failed: count,
    cancelled: count,
    /** Of the completed ones: nothing was there to do. */
    noWork: count,
  }),
  /** Items kept out by the scope or because they do not parse as a host, URL or CIDR. */
  refused: count,
  /** Attempts that tasks were taken back from: lost workers, unread messages. */
  recovered: count,
  /** Pending work and no live worker has any of its tags, since then. */
  starvedSince: time.nullable(),
  /** Why the step is blocked, or its revision was not taken. */
  note: z.string().nullable(),
});
export type StepView = z.infer<typeof stepViewSchema>;

export const scanSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  definition: z.string(),
  /** The newest that the scan has taken. */
  revision: z.int(),
  /** It takes no other. */
  pinned: z.boolean(),
  status: z.enum(scanStatuses),
  generation: z.int(),
  cancelRequested: z.boolean(),
  reason: z.string().nullable(),
  createdAt: time,
  finishedAt: time.nullable(),
  lastTickAt: time.nullable(),
});
export type ScanView = z.infer<typeof scanSchema>;

/** `GET /v1/scans/{id}`; `latest` is an id too. */
export const scanDetailSchema = scanSchema.extend({
  scope: scopeSchema,
  steps: z.array(stepViewSchema),
  /** Result files not yet read into the inventory. */
  unfinalized: count,
  poisoned: count,
  records: z.record(z.string(), count),
  temporalWorkflowId: z.string(),
});
export type ScanDetail = z.infer<typeof scanDetailSchema>;
export const scanListSchema = listOf(scanSchema);
export const scanListQuerySchema = pageQuerySchema.extend({ status: z.enum(scanStatuses).optional() });

/** `POST /v1/scans/{id}/retry`: all Failed and Cancelled tasks; `POST /v1/tasks/{id}/retry`: one. */
export const retriedSchema = z.object({ scan: scanSchema, retried: count });

/** `GET /v1/tasks?scan=…&step=…&status=…`. */
export const taskSchema = z.object({
  id: z.uuid(),
  scanId: z.uuid(),
  step: z.string(),
  parentTaskId: z.uuid().nullable(),
  item: z.json().nullable(),
  status: z.enum(taskStatuses),
  noWork: z.boolean(),
  tag: z.string().nullable(),
  worker: z.string().nullable(),
  attempts: z.int(),
  /** How often a worker gave it back: no failures, and no retry is spent. */
  releases: z.int(),
  exitCode: z.int().nullable(),
  failure: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** What the reader had to say: cut output, bad records. */
  warnings: z.array(z.string()),
  records: count,
  badRecords: count,
  publishedAt: time.nullable(),
  startedAt: time.nullable(),
  finishedAt: time.nullable(),
  /** Times that it was lost after a start without a result. */
  recoveries: z.int(),
  /** When and why it was last taken back from an attempt, and from which worker if one had started it. */
  lastRecovery: z.object({ rule: z.enum(recoveryRules), worker: z.string().nullable(), at: time }).nullable(),
});
export type TaskView = z.infer<typeof taskSchema>;
export const taskListSchema = listOf(taskSchema);
export const taskListQuerySchema = pageQuerySchema.extend({
  scan: z.string().max(64),
  step: z.string().max(63).optional(),
  status: z.enum(taskStatuses).optional(),
});

/** `GET /v1/workers`: the newest incarnation of every name that pulsed in the last hour. */
export const workerViewSchema = z.object({
  name: z.string(),
  incarnationId: z.uuid(),
  location: z.string(),
  image: z.string(),
  tags: z.array(z.string()),
  slots: z.int(),
  freeSlots: z.int(),
  state: z.enum(['alive', 'draining', 'absent', 'replaced']),
  attempts: z.int(),
  registeredAt: time,
  lastPulseAt: time.nullable(),
});
export type WorkerView = z.infer<typeof workerViewSchema>;
export const workerListSchema = listOf(workerViewSchema).extend({
  /** Over half of the fleet fell silent at once: until then no worker is judged absent. */
  hold: z.object({ until: time, note: z.string() }).nullable(),
});
export type WorkerList = z.infer<typeof workerListSchema>;

/** `POST /v1/tokens` (admin); the token itself is in this answer and nowhere else. */
export const tokenRoles = ['viewer', 'operator', 'admin', 'worker'] as const;
export type TokenRole = (typeof tokenRoles)[number];
export const createTokenSchema = z.strictObject({
  name: z.string().min(1).max(100),
  role: z.enum(tokenRoles),
  /** Of worker tokens: the tags a worker may take work of; empty means any. */
  tags: z.array(z.string().max(63)).max(64).default([]),
  /** Of worker tokens: what its workers' names start with. */
  namePrefix: z.string().max(64).default(''),
});
export type CreateToken = z.input<typeof createTokenSchema>;
export const createdTokenSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  role: z.enum(tokenRoles),
  token: z.string(),
});

/** `POST /v1/secrets` (admin). The value goes in and never comes out again. */
export const setSecretSchema = z.strictObject({
  name: z.string().regex(namePattern),
  /** What an environment variable can hold. */
  value: z.string().min(1).max(65_536),
});
export const secretSchema = z.object({ name: z.string(), updatedAt: time, updatedBy: z.string() });
export const secretListSchema = listOf(secretSchema);

/** `GET /health/live` and `/health/ready`: the only open routes. */
export const healthSchema = z.object({
  status: z.enum(['ok', 'unready']),
  checks: z.record(z.string(), z.string()),
});
