// What the broker carries to a worker. The credential is added by the publisher: no table holds it.
import { z } from 'zod';
import { inputNamePattern, namePattern } from './names.ts';
import { credentialSchema } from './worker-api.ts';

const part = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text'), text: z.string() }),
  z.object({ kind: z.literal('in'), name: z.string() }),
  z.object({ kind: z.literal('out'), name: z.string() }),
]);
const argument = z.array(part);

/** The part that is stored in the outbox. */
export const dispatchSchema = z.object({
  v: z.literal(1),
  attemptId: z.uuid(),
  taskId: z.uuid(),
  scanId: z.uuid(),
  step: z.string().regex(namePattern),
  tag: z.string().regex(namePattern),
  dispatchKey: z.string(),
  command: z.array(argument).min(1),
  stdin: argument.nullable(),
  env: z.record(z.string(), argument),
  inputs: z.array(
    z.object({
      name: z.string().regex(inputNamePattern),
      as: z.enum(['file', 'directory']),
      /** Of its whole content: a worker that has fetched that once need not ask again. */
      digest: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .optional(),
    }),
  ),
  outputs: z.array(
    z.object({ name: z.string().regex(namePattern), path: z.string().nullable(), optional: z.boolean() }),
  ),
  okExit: z.array(z.int()),
  timeoutMs: z.int().min(1),
});
export type Dispatch = z.infer<typeof dispatchSchema>;

/** The whole message on the wire. */
export const dispatchMessageSchema = dispatchSchema.extend({
  /** Signs the attempt's callbacks. */
  credential: credentialSchema,
});
export type DispatchMessage = z.infer<typeof dispatchMessageSchema>;
