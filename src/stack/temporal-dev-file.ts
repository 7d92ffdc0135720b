import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { z } from 'zod';
import { applyTemporalSetup, type TemporalSetup } from '#sonar/transport/temporal-setup.ts';
import { StackError } from './stack-error.ts';

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const durationMs = z
  .string()
  .regex(/^\d+[smhd]$/, 'write a duration such as 72h or 7d')
  .transform((text) => Number(text.slice(0, -1)) * unitMs[text.slice(-1) as keyof typeof unitMs]);

const port = z.union([z.literal('auto'), z.int().min(1).max(65_535)]);

const temporalDevFile = z.strictObject({
  namespace: z.string().min(1),
  retention: durationMs,
  searchAttributes: z.record(
    z.string(),
    z.enum(['Text', 'Keyword', 'Int', 'Double', 'Bool', 'Datetime', 'KeywordList']),
  ),
  ports: z.strictObject({ frontend: port, http: port, metrics: port, ui: port }),
  sqlite: z.record(z.string(), z.string()),
  dynamicConfig: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});

/** What `temporal-dev.yaml` says; durations in milliseconds. */
export type TemporalDevFile = z.infer<typeof temporalDevFile>;

const standardFile = fileURLToPath(new URL('../../temporal-dev.yaml', import.meta.url));

/** Reads `temporal-dev.yaml`. Throws `data_unusable` naming every field that is wrong. */
export function readTemporalDevFile(file: string = standardFile): TemporalDevFile {
  const parsed = temporalDevFile.safeParse(parse(readFileSync(file, 'utf8')));
  if (parsed.success) return parsed.data;
  throw new StackError('data_unusable', `${file} is not valid:\n${z.prettifyError(parsed.error)}`);
}

/** The part of the file that any Temporal server can be given. */
export function setupOf(file: TemporalDevFile, namespace: string = file.namespace): TemporalSetup {
  return { namespace, retentionMs: file.retention, searchAttributes: file.searchAttributes };
}

/**
 * Gives the Temporal server at `address` the namespace, retention and search attributes of `temporal-dev.yaml`. May be
 * repeated. Throws when the server does not answer or has an attribute of another type.
 */
export async function applyTemporalConfig(
  address: string,
  namespace?: string,
  signal?: AbortSignal,
): Promise<void> {
  await applyTemporalSetup(address, setupOf(readTemporalDevFile(), namespace), signal);
}
