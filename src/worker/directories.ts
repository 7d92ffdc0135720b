// The worker's disk. It is temporary: what matters is in PostgreSQL and S3, but for results not yet delivered.
import { chmod, lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';

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

/** Removes a folder whatever a command did to its permissions; links are removed, never followed. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    await openUp(path);
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function openUp(path: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) return;
  await chmod(path, 0o700);
  for (const name of await readdir(path)) await openUp(join(path, name));
}
