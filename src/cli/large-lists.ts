// Lists that are too large for a request go to the object store, whatever their size, and the scan names them by hash.
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ApiClient } from './api-client.ts';
import { uploadFile } from './file-upload.ts';

/** Lists up to this are part of the request, and may be named in templates too. */
const requestBytes = 1024 * 1024;

export interface DividedWords {
  /** What goes with the request. */
  small: string[];
  /** Name → its words, where one of its files is too large for that. */
  large: Map<string, string[]>;
}

/** Divides the words of `--input`. What is no readable file stays among the small: reading it tells its fault. */
export function divideInputs(words: readonly string[], workingDirectory: string): DividedWords {
  const nameOf = (word: string): string => word.slice(0, word.indexOf('='));
  const names = new Set(words.filter((word) => isLarge(word, workingDirectory)).map(nameOf));
  const large = new Map([...names].map((name) => [name, words.filter((word) => nameOf(word) === name)]));
  return { small: words.filter((word) => !names.has(nameOf(word))), large };
}

function isLarge(word: string, workingDirectory: string): boolean {
  const file = fileOf(word);
  if (file === null) return false;
  const stats = statSync(resolve(workingDirectory, file), { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.size > requestBytes;
}

/** `name=@file`, and not `name=@@text`. */
function fileOf(word: string): string | null {
  const value = word.slice(word.indexOf('=') + 1);
  return word.indexOf('=') > 0 && /^@[^@]/.test(value) ? value.slice(1) : null;
}

/** @returns name → the hash by which its lines are stored. */
export async function uploadLists(
  client: ApiClient,
  large: DividedWords['large'],
  workingDirectory: string,
): Promise<Record<string, { sha256: string }>> {
  const stored: [string, { sha256: string }][] = [];
  for (const [name, words] of large) {
    const option = `--input ${name}`;
    const [first = ''] = words;
    const only = words.length === 1 ? fileOf(first) : null;
    const sha256 =
      only === null
        ? await uploadTogether(client, words, option, workingDirectory)
        : await uploadFile(client, resolve(workingDirectory, only), option);
    stored.push([name, { sha256 }]);
  }
  return Object.fromEntries(stored);
}

/** A name that is given several times is one list: its files and texts, each on lines of its own. */
async function uploadTogether(
  client: ApiClient,
  words: readonly string[],
  option: string,
  workingDirectory: string,
): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'sonar-list-'));
  try {
    const together = join(directory, 'list.txt');
    for (const word of words) {
      const file = fileOf(word);
      const text = word.slice(word.indexOf('=') + 1).replace(/^@@/, '@');
      const source =
        file === null ? Readable.from([text]) : createReadStream(resolve(workingDirectory, file));
      await pipeline(source, createWriteStream(together, { flags: 'a' }));
      await pipeline(Readable.from(['\n']), createWriteStream(together, { flags: 'a' }));
    }
    return await uploadFile(client, together, option);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
