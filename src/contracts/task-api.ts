// What became of a task and of a scan, attempt by attempt: `GET /v1/tasks/{id}/attempts`, `…/logs`, `…/outputs`,
// `…/outputs/place`, `GET /v1/scans/{id}/events`.
import { z } from 'zod';
import { count, listOf, pageQuerySchema, time } from './scan-api.ts';
import { outcomes } from './states.ts';

const failure = z.object({ code: z.string(), message: z.string() }).nullable();

export const attemptViewSchema = z.object({
  id: z.uuid(),
  /** Counts from 1 within the task. */
  number: z.int(),
  tag: z.string(),
  worker: z.string().nullable(),
  placedAt: time,
  /** The broker has confirmed its message. */
  publishedAt: time.nullable(),
  startedAt: time.nullable(),
  endedAt: time.nullable(),
  /** result, cancelled, released, recovered, superseded; null while it is under way. */
  endReason: z.string().nullable(),
  /** Why it was released (spot, shutdown, …), or by which rule it was recovered (worker_absent, …). */
  endDetail: z.string().nullable(),
  /** Its result is the one that counts. */
  accepted: z.boolean(),
  outcome: z.enum(outcomes).nullable(),
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  failure,
  files: count,
  finalization: z.object({ id: z.uuid(), status: z.string(), error: z.string().nullable() }).nullable(),
});
export type AttemptView = z.infer<typeof attemptViewSchema>;
export const attemptListSchema = listOf(attemptViewSchema);

/** Of the newest attempt with a result, unless `attempt` names another by its number. */
export const attemptQuerySchema = z.object({ attempt: z.coerce.number().int().min(1).optional() });

const streamViewSchema = z.object({
  /** base64 of its first bytes. */
  head: z.string(),
  size: count,
  /** There was more than the head. */
  truncated: z.boolean(),
  /** The output that took it instead. */
  output: z.object({ output: z.string(), path: z.string() }).nullable(),
});
export const taskLogsSchema = z.object({
  attempt: attemptViewSchema,
  /** Null: the attempt has no result. */
  stdout: streamViewSchema.nullable(),
  stderr: streamViewSchema.nullable(),
});
export type TaskLogs = z.infer<typeof taskLogsSchema>;

export const outputViewSchema = z.object({
  attempt: z.int(),
  output: z.string(),
  path: z.string(),
  size: count,
  sha256: z.string(),
  /** Of a command that did not complete. */
  partial: z.boolean(),
});
export type OutputView = z.infer<typeof outputViewSchema>;
export const outputListSchema = listOf(outputViewSchema);
export const outputListQuerySchema = pageQuerySchema
  // An output's name and a path of 1,024 bytes, in base64.
  .extend({ after: z.string().max(2_048).optional(), output: z.string().max(128).optional() })
  .extend(attemptQuerySchema.shape);
export const outputPlaceQuerySchema = attemptQuerySchema.extend({
  output: z.string().max(128),
  path: z.string().max(1_024),
});
/** Where one file can be fetched for some minutes, by anybody who has the URL. */
export const outputPlaceSchema = outputViewSchema.extend({ url: z.string() });
export type OutputPlace = z.infer<typeof outputPlaceSchema>;

export const scanEventKinds = [
  'scan_started',
  'step_began',
  'placed',
  'ended',
  'failed',
  'poisoned',
  'scan_ended',
] as const;
export type ScanEventKind = (typeof scanEventKinds)[number];
export const scanEventSchema = z.object({
  at: time,
  kind: z.enum(scanEventKinds),
  step: z.string().nullable(),
  taskId: z.uuid().nullable(),
  tag: z.string().nullable(),
  worker: z.string().nullable(),
  /** Of an attempt that ended its outcome or the reason of its end; of a task its failure; of a scan its state. */
  reason: z.string().nullable(),
  exitCode: z.int().nullable(),
  message: z.string().nullable(),
});
export type ScanEvent = z.infer<typeof scanEventSchema>;
/** `next` is never null: a scan may be opened again, and what happens then comes after it. */
export const scanEventListSchema = z.object({ items: z.array(scanEventSchema), next: z.string() });
export const scanEventQuerySchema = pageQuerySchema;
