// Bodies of what a tag worker says to the api and is answered. `v` is the version of the message:
// readers accept this one and the one before (there is none before 1).
import { z } from 'zod';
import { inputNamePattern, namePattern } from './names.ts';
import { outcomes } from './states.ts';

export const messageVersion = 1;
const version = z.literal(messageVersion);
const uuid = z.uuid();
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const tag = z.string().regex(namePattern);
export const workerNameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/);

/** base64 of a key; what is none signs nothing. */
export const credentialSchema = z.base64().min(1).max(1024);

/** `POST /v1/workers`, with a worker token. */
export const registrationSchema = z.strictObject({
  v: version,
  name: workerNameSchema,
  /** Made by the worker at each start. */
  incarnationId: uuid,
  location: z.string().max(200),
  image: z.string().max(200),
  tags: z.array(tag).min(1).max(64),
  slots: z.int().min(1).max(1024),
});
export type Registration = z.infer<typeof registrationSchema>;

export const registrationAnswerSchema = z.object({
  /** The incarnation's; signs its pulses. */
  secret: credentialSchema,
  pulseEveryMs: z.int(),
  serverTime: z.string(),
});
export type RegistrationAnswer = z.infer<typeof registrationAnswerSchema>;

/** `POST /v1/workers/{incarnationId}/pulses`, signed with the incarnation's secret. */
export const pulseSchema = z.strictObject({
  v: version,
  name: workerNameSchema,
  incarnationId: uuid,
  /** Grows by one a pulse from 1; an older or equal one is answered but changes nothing. */
  sequence: z.int().min(1),
  location: z.string().max(200),
  image: z.string().max(200),
  tags: z.array(tag).min(1).max(64),
  slots: z.int().min(1).max(1024),
  freeSlots: z.int().min(0).max(1024),
  draining: z.boolean(),
  /** In hand: from before `started` is sent until its disposition is known. */
  attempts: z.array(uuid).max(4096),
});
export type Pulse = z.infer<typeof pulseSchema>;

export const pulseAnswerSchema = z.object({
  /** Attempts in hand whose command must be ended; the result is still wanted. */
  cancel: z.array(uuid),
  /** Attempts in hand that are no longer current: end the command, send nothing. */
  superseded: z.array(uuid),
  /** A newer incarnation of this name has registered: end everything and exit. */
  replaced: z.boolean(),
  serverTime: z.string(),
});
export type PulseAnswer = z.infer<typeof pulseAnswerSchema>;

const attemptIdentity = {
  v: version,
  attemptId: uuid,
  dispatchKey: z.string().max(512),
  worker: workerNameSchema,
  incarnationId: uuid,
};

/** `POST /v1/attempts/{id}/started`; this and all below are signed with the attempt's credential. */
export const startedSchema = z.strictObject({
  ...attemptIdentity,
  deliveryId: uuid,
  /** Sequence of the last pulse sent; 0 before the first. */
  pulseSequence: z.int().min(0),
});
export type Started = z.infer<typeof startedSchema>;

export const inputFileSchema = z.object({
  /** Relative to the input's folder; for a `file` input its base name. */
  path: z.string(),
  url: z.string(),
  size: z.int(),
  sha256,
});
export type InputFile = z.infer<typeof inputFileSchema>;

export const startedAnswerSchema = z.discriminatedUnion('disposition', [
  z.object({
    disposition: z.literal('run'),
    /** Environment variables of the command. They are here and in no message, log or table in the clear. */
    secrets: z.record(z.string(), z.string()).default({}),
    serverTime: z.string(),
  }),
  /** Not to be run by this delivery: ack the message and forget it. */
  z.object({ disposition: z.literal('skip'), reason: z.string(), serverTime: z.string() }),
]);
export type StartedAnswer = z.infer<typeof startedAnswerSchema>;

/** `POST /v1/attempts/{id}/inputs`: a page of download URLs; asked again when they expire. */
export const inputsRequestSchema = z.strictObject({
  ...attemptIdentity,
  input: z.string().regex(inputNamePattern),
  after: z.string().max(8192).nullable(),
});
export type InputsRequest = z.infer<typeof inputsRequestSchema>;
export const inputsAnswerSchema = z.object({ files: z.array(inputFileSchema), next: z.string().nullable() });
export type InputsAnswer = z.infer<typeof inputsAnswerSchema>;

/** `POST /v1/attempts/{id}/uploads`: presigned PUT URLs, one for each file. */
export const uploadsSchema = z.strictObject({
  ...attemptIdentity,
  files: z
    .array(z.strictObject({ size: z.int().min(0), sha256 }))
    .min(1)
    .max(100),
});
export type Uploads = z.infer<typeof uploadsSchema>;
export const uploadsAnswerSchema = z.object({
  /** In the order asked. PUT with exactly these headers; 412 means that it is already there. */
  files: z.array(z.object({ url: z.string(), headers: z.record(z.string(), z.string()) })),
});
export type UploadsAnswer = z.infer<typeof uploadsAnswerSchema>;

/** A path is part of keys that an index holds. */
const maxPathBytes = 1024;

export const manifestEntrySchema = z.strictObject({
  output: z.string().max(128),
  /** Relative to the output, with forward slashes. */
  path: z
    .string()
    .min(1)
    .refine((path) => Buffer.byteLength(path) <= maxPathBytes, `is longer than ${maxPathBytes} bytes`),
  size: z.int().min(0),
  sha256,
});
export type ManifestEntry = z.infer<typeof manifestEntrySchema>;

const stream = z.strictObject({
  /** base64 of the head of the stream, at most 16 KiB; null where a declared output took it. */
  head: z.string().max(24_000).nullable(),
  size: z.int().min(0),
  sha256,
  truncated: z.boolean(),
});

/** `POST /v1/attempts/{id}/result`. */
export const resultSchema = z.strictObject({
  ...attemptIdentity,
  outcome: z.enum(outcomes),
  exitCode: z.int32().nullable(),
  signal: z.string().max(16).nullable(),
  failure: z.strictObject({ code: z.string().max(64), message: z.string().max(2000) }).nullable(),
  manifest: z.array(manifestEntrySchema).max(10_000),
  stdout: stream,
  stderr: stream,
  durationMs: z.int().min(0),
  /** `domain/result-digest.ts` over the fields above. */
  digest: sha256,
});
export type Result = z.infer<typeof resultSchema>;

const dispositions = ['accepted', 'duplicate', 'conflict', 'superseded', 'rejected'] as const;
export const resultAnswerSchema = z.object({ disposition: z.enum(dispositions), serverTime: z.string() });
export type ResultAnswer = z.infer<typeof resultAnswerSchema>;
export type Disposition = ResultAnswer['disposition'];

/** `POST /v1/attempts/{id}/release`: back to Pending at once; the command was ended before. */
export const releaseSchema = z.strictObject({
  ...attemptIdentity,
  /** `interrupted`: this worker's own fault ended the command (a killed helper, a full disk, no input to be had). */
  reason: z.enum(['spot', 'shutdown', 'max_lifetime', 'command_not_found', 'interrupted']),
});
export type Release = z.infer<typeof releaseSchema>;
export const releaseAnswerSchema = z.object({
  disposition: z.enum(['accepted', 'superseded', 'rejected']),
  serverTime: z.string(),
});
export type ReleaseAnswer = z.infer<typeof releaseAnswerSchema>;
