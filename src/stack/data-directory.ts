import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { StackError } from './stack-error.ts';

/** Where a stack keeps its things. */
export interface DataDirectory {
  root: string;
  logs: string;
  runs: string;
}

/**
 * PostgreSQL runs as another user when we are root, and has to pass a folder on the way to its data; to pass is not to
 * list, and what is secret is closed itself.
 */
export const passable = process.getuid?.() === 0 ? 0o711 : 0o700;

/** Makes the data folder, for its owner only. Throws `data_unusable` when it belongs to somebody else. */
export function openDataDirectory(dataDir: string): DataDirectory {
  const root = resolve(dataDir);
  const directory = { root, logs: join(root, 'logs'), runs: join(root, 'run') };
  try {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    const owner = statSync(root).uid;
    const self = process.getuid?.();
    if (self !== undefined && self !== 0 && owner !== self) {
      throw new StackError(
        'data_unusable',
        `the data folder ${root} belongs to user ${owner}, not to you (${self})`,
        [`name another data folder, or as its owner: rm -r ${root}`],
      );
    }
    chmodSync(root, passable);
    mkdirSync(directory.logs, { recursive: true, mode: 0o700 });
    mkdirSync(directory.runs, { recursive: true, mode: 0o700 });
  } catch (fault) {
    const code = (fault as NodeJS.ErrnoException).code;
    if (
      code === 'EACCES' ||
      code === 'EPERM' ||
      code === 'EROFS' ||
      code === 'ENOTDIR' ||
      code === 'EEXIST'
    ) {
      throw new StackError('data_unusable', `the data folder ${root} cannot be written (${code})`, [
        'name another data folder, or mend the rights of this one (it may have been made by root)',
      ]);
    }
    throw fault;
  }
  return directory;
}

/** Reads a JSON file; undefined when there is none or it is not JSON. */
export function readJsonFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Replaces a file in one step, readable by its owner only. */
export function writePrivateFile(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
