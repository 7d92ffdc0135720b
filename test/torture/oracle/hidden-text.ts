// A secret is in memory and in the environment of its commands, and in no file: no log, no row, no object, no message.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Finding } from './finding.ts';

/** Files of the run that hold what is to be hidden. @throws Error when they could not be looked through. */
export async function shownSecrets(directory: string, hidden: readonly string[]): Promise<Finding[]> {
  if (hidden.length === 0) return [];
  const words = ['--recursive', '--fixed-strings', '--files-with-matches', '--no-messages', '--devices=skip'];
  const patterns = hidden.flatMap((text) => ['-e', text]);
  const grep = spawn('grep', [...words, ...patterns, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  let found = '';
  grep.stdout.setEncoding('utf8').on('data', (text: string) => (found += text));
  const [code] = (await once(grep, 'close')) as [number | null];
  // 2 with nothing found: also of files that went away meanwhile, which no message is made of.
  if (code === null) throw new Error('grep was killed');
  return found
    .split('\n')
    .filter((file) => file !== '')
    .map((file) => ({ kind: 'leaked', what: `a secret stands in ${file}` }));
}
