import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile, writePrivateFile } from './data-directory.ts';
import { StackError } from './stack-error.ts';

const stackSecrets = z.object({
  databasePassword: z.string(),
  amqpPassword: z.string(),
  erlangCookie: z.string(),
  s3AccessKeyId: z.string(),
  s3SecretAccessKey: z.string(),
  masterKeys: z.string(),
});

/** What the services of one data folder know their clients by. */
export type StackSecrets = z.infer<typeof stackSecrets>;

/**
 * The secrets of a data folder, made at its first start and kept for its owner only. A damaged file is a fault: new
 * secrets would fit neither the services' data nor what the master key has sealed.
 */
export function loadSecrets(dataDir: string): StackSecrets {
  const file = join(dataDir, 'secrets.json');
  if (existsSync(file)) {
    const kept = stackSecrets.safeParse(readJsonFile(file));
    if (kept.success) return kept.data;
    throw new StackError(
      'data_unusable',
      `${file} is damaged, and the data beside it cannot be used without it`,
      [`put the file back from a backup, or give the data up: rm -r ${dataDir}`],
    );
  }
  const word = (bytes: number): string => randomBytes(bytes).toString('hex');
  const made: StackSecrets = {
    databasePassword: word(24),
    amqpPassword: word(24),
    erlangCookie: word(16).toUpperCase(),
    s3AccessKeyId: `SONAR${word(8).toUpperCase()}`,
    s3SecretAccessKey: word(24),
    masterKeys: `k1:${randomBytes(32).toString('base64')}`,
  };
  writePrivateFile(file, JSON.stringify(made, undefined, 2));
  return made;
}
