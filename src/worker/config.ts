import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { namePattern } from '#sonar/contracts/names.ts';
import { workerNameSchema } from '#sonar/contracts/worker-api.ts';
import { maxTimerMs } from '#sonar/platform/wait.ts';

const mebibyte = 1024 * 1024;
const seconds = 1_000;
/** A day is nonsense for each of these already; what is beyond a timer would be no wait at all. */
const wait = (leastMs: number) => z.int().min(leastMs).max(maxTimerMs, 'is longer than 24 days');

/** What a tag worker is told. `token` and the password in `amqpUrl` are secrets: they are never logged. */
export const workerConfigSchema = z.strictObject({
  apiUrl: z.url({ protocol: /^https?$/ }),
  token: z.string().min(1),
  amqpUrl: z.string().min(1),
  name: workerNameSchema,
  tags: z.array(z.string().regex(namePattern)).min(1).max(64),
  slots: z.int().min(1).max(1024).default(1),
  location: z.string().max(200).default(''),
  image: z.string().max(200).default(''),
  /** The worker's disk; several workers may share it, each has a folder of its name in it. */
  directory: z.string().refine(isAbsolute, 'must be an absolute path'),
  /** Bytes of one output, declared stdout included. */
  outputCapBytes: z
    .int()
    .min(1)
    .default(2048 * mebibyte),
  /** Bytes of stdout and stderr that are hashed; the rest is dropped. */
  streamCapBytes: z
    .int()
    .min(1)
    .default(8 * mebibyte),
  /** Bytes of undeclared stdout and stderr that ride in the result. */
  headBytes: z.int().min(0).max(16_384).default(16_384),
  /** From SIGTERM to SIGKILL. */
  termGraceMs: wait(0).default(10 * seconds),
  /** How long a stopping worker waits for its commands before it ends and releases them. */
  drainMs: wait(0).default(60 * seconds),
  /** After so long the worker drains as if it were stopped. */
  maxLifetimeMs: wait(1).optional(),
  /** How long `started` is tried before its message goes back to the broker. */
  startedForMs: wait(0).default(15 * seconds),
  /** How long a result is tried before its message goes back; it is kept and sent on in the background. */
  resultForMs: wait(0).default(30 * seconds),
  /** How long an object store that does not answer is asked for inputs before the attempt is released. */
  transferForMs: wait(0).default(600 * seconds),
  /** How long a predecessor's stored results are resent, once the api answers. */
  resendForMs: wait(0).default(60 * seconds),
  /** The instance metadata service of a machine that may be taken away; null where there is none to ask. */
  metadataUrl: z
    .url({ protocol: /^https?$/ })
    .nullable()
    .default(null),
  /** EC2 asks for 5 s. */
  metadataEveryMs: wait(1).default(5 * seconds),
  retryFirstMs: wait(1).default(250),
  retryMaxMs: wait(1).default(15 * seconds),
});
export type WorkerConfig = z.infer<typeof workerConfigSchema>;
