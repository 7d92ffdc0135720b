// What Sonar has given up on after so many tries, kept with its error and a sample: `GET /v1/poison?scan=…`,
// `GET /v1/poison/{id}`, `POST /v1/poison/{id}/retry`, `POST /v1/poison/retry` for a whole scan.
import { z } from 'zod';
import { count, listOf, pageQuerySchema, scanSchema, time } from './scan-api.ts';
import { taskStatuses } from './states.ts';

/** An accepted result that no reader could read. Other kinds of work join as members of the union below. */
const poisonedResultSchema = z.object({
  kind: z.literal('finalization'),
  id: z.uuid(),
  scanId: z.uuid(),
  scan: z.string(),
  taskId: z.uuid(),
  step: z.string(),
  item: z.json().nullable(),
  attemptId: z.uuid(),
  worker: z.string().nullable(),
  taskStatus: z.enum(taskStatuses),
  error: z.string(),
  /** The file that was being read; of it the first bad record, else its head: safe to print. */
  sample: z.object({ file: z.string(), text: z.string().nullable() }).nullable(),
  /** Bytes of all its files. */
  size: count,
  attempts: count,
  poisonedAt: time,
});
export const poisonItemSchema = z.discriminatedUnion('kind', [poisonedResultSchema]);
export type PoisonItem = z.infer<typeof poisonItemSchema>;
export const poisonListSchema = listOf(poisonItemSchema);
export const poisonListQuerySchema = pageQuerySchema.extend({ scan: z.string().max(64).optional() });

export const repairAllSchema = z.strictObject({ scan: z.string().max(64) });
/** 0 where the one that was asked for waits to be read already. */
export const repairedSchema = z.object({ scan: scanSchema, repaired: count });
