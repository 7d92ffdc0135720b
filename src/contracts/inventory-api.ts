// The inventory over HTTP: what was found, what differs between two scans, and lists that are brought in.
import { z } from 'zod';
import { changes } from './changes.ts';
import { namePattern } from './names.ts';
import { count, listOf, pageQuerySchema, time } from './scan-api.ts';

const recordType = z.string().regex(namePattern, 'is no name of a record type');
const scan = z.string().max(64);
const flag = z.enum(['true', 'false']).transform((text) => text === 'true');

/**
 * `GET /v1/inventory`: records by type and key. A page may hold fewer than `limit`, or none, and still have a `next`:
 * what a filter passes over is bounded, too.
 */
export const inventoryItemSchema = z.object({
  type: z.string(),
  key: z.string(),
  fields: z.record(z.string(), z.json()),
  sets: z.record(z.string(), z.array(z.string())),
  /** Nothing but outputs of commands that failed or timed out have shown it. */
  partial: z.boolean(),
  firstSeenAt: time,
  lastSeenAt: time,
});
export type InventoryItem = z.infer<typeof inventoryItemSchema>;
export const inventoryListSchema = listOf(inventoryItemSchema).extend({
  /** Why what is asked about one scan is not all of it: it runs, or results of it are poisoned. */
  warnings: z.array(z.string()),
});

export const inventoryFilterSchema = z.object({
  type: recordType.optional(),
  /** What this scan saw, as it saw it: fields, first and last seen are its own. */
  scan: scan.optional(),
  /** Only what scans of this definition saw. */
  definition: z.string().max(63).optional(),
  /** Text that the key contains, in any case. */
  contains: z.string().min(1).max(256).optional(),
  /** `FIELD=VALUE`: a field has this value, as text, or a set holds it; may be given several times. */
  field: z
    .union([z.string(), z.array(z.string())])
    .transform((value) => (Array.isArray(value) ? value : [value]))
    .pipe(
      z
        .array(
          z
            .string()
            .max(1024)
            .regex(/^[^=]+=/, 'write FIELD=VALUE'),
        )
        .max(8),
    )
    .optional(),
  /** Last seen at this time or later. */
  seenSince: time.optional(),
  /** Last seen before this time. */
  seenBefore: time.optional(),
  /** First seen at this time or later. */
  newSince: time.optional(),
  partial: flag.optional(),
});
export type InventoryFilter = z.output<typeof inventoryFilterSchema>;
export const inventoryQuerySchema = pageQuerySchema.extend(inventoryFilterSchema.shape);

/** `GET /v1/inventory/diff?from=SCAN&to=SCAN`, or `?definition=NAME`: its last two scans that ended. */
export const diffQuerySchema = pageQuerySchema.extend({
  from: scan.optional(),
  to: scan.optional(),
  definition: z.string().max(63).optional(),
  type: recordType.optional(),
  change: z.enum(changes).optional(),
});
const diffScanSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  definition: z.string(),
  status: z.string(),
  createdAt: time,
});
export const diffItemSchema = z.object({
  change: z.enum(changes),
  type: z.string(),
  key: z.string(),
  /** Of a changed record: every field or set that differs. Null: not there. */
  fields: z.array(z.object({ name: z.string(), before: z.json(), after: z.json() })),
  /** Of an unknown one: why it cannot be said that it, or some field of it, is gone. */
  reason: z.string().nullable(),
});
export type DiffItem = z.infer<typeof diffItemSchema>;
export const diffListSchema = listOf(diffItemSchema).extend({
  from: diffScanSchema,
  to: diffScanSchema,
  /** What keeps absences from being judged, by step, or of the scans as a whole where `step` is null. */
  unjudged: z.array(z.object({ step: z.string().nullable(), reason: z.string() })),
});
export type DiffList = z.infer<typeof diffListSchema>;

/** `GET /v1/inventory/types`: Sonar's own record types, and those that definitions of the workspace declare. */
export const recordTypeListSchema = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      key: z.array(z.string()),
      /** The definition that declared it first; null: Sonar's own. */
      declaredBy: z.string().nullable(),
    }),
  ),
});

/**
 * `POST /v1/inventory/imports` (operator): a file that was stored by `POST /v1/files` is read into the inventory. The
 * same file read in the same way is the same import: post it again to go on, until it is no longer `due`;
 * one that has `failed` is tried anew.
 */
export const importSchema = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Shown to people. */
  name: z.string().min(1).max(255),
  read: z.strictObject({
    format: z.string().max(63),
    record: recordType.optional(),
    /** Field of the record: field of the row. */
    fields: z.record(z.string().max(63), z.string().max(256)).optional(),
  }),
});
export type ImportRequest = z.input<typeof importSchema>;
export const importViewSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  status: z.enum(['due', 'done', 'failed']),
  /** False: it was there already, and had not failed. */
  created: z.boolean(),
  records: count,
  badRecords: count,
  warnings: z.array(z.string()),
  error: z.string().nullable(),
  createdAt: time,
  finishedAt: time.nullable(),
  importedBy: z.string(),
});
export type ImportView = z.infer<typeof importViewSchema>;
