// The worker's disk. It is temporary: what matters is in PostgreSQL and S3, but for results not yet delivered.
import { chmod, lstat, mkdir, readdir, realpath, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '#sonar/platform/ids.ts';

export interface WorkerDirectories {
  base: string;
  /** One file a process that holds or wants this name. */
  lock: string;
  /** One folder an attempt, with `in`, `out` and `tmp`. */
  work: string;
  /** Declared stdout, out of the command's own folder: it cannot put a link in its place. */
  streams: string;
  /** Signed results without a disposition. */
  results: string;
  /** What many attempts share, by digest. */
  shared: string;
  /** One file a live process group. */
  groups: string;
}

/** Makes what is missing. Only this user may look in: inputs, outputs and credentials lie here. */
export async function makeDirectories(directory: string, name: string): Promise<WorkerDirectories> {
  await mkdir(directory, { recursive: true });
  // A real path, so that a link below it is known for what it is.
  const base = join(await realpath(directory), name);
  const directories = {
    base,
    lock: join(base, 'lock'),
    work: join(base, 'work'),
    streams: join(base, 'streams'),
    results: join(base, 'results'),
    shared: join(base, 'shared'),
    groups: join(base, 'groups'),
  };
  for (const path of Object.values(directories)) await mkdir(path, { recursive: true, mode: 0o700 });
  return directories;
}

/**
 * Removes a folder whatever a command did to its permissions and however deep it made it; links are removed, never
 * followed.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    await flatten(Buffer.from(path));
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Bytes of a path below which no name, which has 255 at most, makes it longer than the system takes. */
const maxPathBytes = 3_072;
/** A tree that moves more folders than this while it is taken apart has somebody at work in it. */
const maxMoves = 100_000;

/**
 * Opens every folder of a tree, and moves what lies too deep to be named up to its root. Names are bytes: a command need
 * not write UTF-8.
 */
async function flatten(root: Buffer): Promise<void> {
  const folders = [root];
  let moves = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (!(await lstat(folder)).isDirectory()) continue;
    await chmod(folder, 0o700);
    if (folder.length > maxPathBytes) {
      moves += 1;
      if (moves > maxMoves)
        throw new Error(`more than ${maxMoves} folders of ${root.toString()} lie too deep`);
      const moved = inFolder(root, Buffer.from(newId()));
      await rename(folder, moved);
      folders.push(moved);
      continue;
    }
    for (const entry of await readdir(folder, { encoding: 'buffer', withFileTypes: true }))
      if (entry.isDirectory()) folders.push(inFolder(folder, entry.name));
  }
}

const inFolder = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, Buffer.from('/'), name]);
