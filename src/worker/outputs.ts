// What a command left behind: a manifest of declared outputs. The command is hostile or was run on hostile data, so
// nothing is followed: a link, a socket or a path that leaves the folder is refused, never uploaded.
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, opendir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Dispatch } from '#sonar/contracts/dispatch-message.ts';
import type { ManifestEntry } from '#sonar/contracts/worker-api.ts';
import { isOwnLack } from './own-lack.ts';
import { type AttemptFolders, pathProblem } from './paths.ts';

export interface OutputFile {
  entry: ManifestEntry;
  /** Where it lies on this machine. */
  path: string;
}

export interface OutputFaults {
  /** Names of outputs that are not optional and are not there. */
  missing: string[];
  /** Why outputs were refused, for people. */
  refused: string[];
}

/** The contract's bound for a manifest. */
const maxFiles = 10_000;
const chunkBytes = 256 * 1024;

class Refusal extends Error {}

/** A folder without permissions or one that vanished is the command's doing too. @throws what is no such thing. */
function refusalOf(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  if (isOwnLack(error)) throw error;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string') return `it cannot be read (${code})`;
  throw error;
}

/**
 * Path outputs of an attempt whose command has ended; every one is judged, whatever befell the others.
 * @throws faults of this machine: they are no output's fault.
 */
export async function collectOutputs(
  outputs: Dispatch['outputs'],
  folders: AttemptFolders,
  capBytes: number,
): Promise<OutputFaults & { files: OutputFile[] }> {
  const files: OutputFile[] = [];
  const missing: string[] = [];
  const refused: string[] = [];
  for (const { name, path, optional } of outputs) {
    if (path === null) continue;
    try {
      const found = await collectOne(name, path, folders, capBytes, maxFiles - files.length);
      if (found === null && !optional) missing.push(name);
      files.push(...(found ?? []));
    } catch (error) {
      refused.push(`output ${name}: ${refusalOf(error)}`);
    }
  }
  return { files, missing, refused };
}

/**
 * Whether a file is still what its entry says; `thorough` looks at its bytes too.
 * @throws faults of this machine.
 */
export async function isUnchanged({ entry, path }: OutputFile, thorough: boolean): Promise<boolean> {
  try {
    if (thorough) {
      const { entry: now } = await describe(entry.output, entry.path, path, entry.size);
      return now.size === entry.size && now.sha256 === entry.sha256;
    }
    await using file = await openUnfollowed(path);
    const stats = await file.stat();
    return stats.isFile() && stats.size === entry.size;
  } catch (error) {
    if (isOwnLack(error)) throw error;
    return false;
  }
}

/** Null when there is nothing at the path. */
async function collectOne(
  output: string,
  path: string,
  folders: AttemptFolders,
  capBytes: number,
  room: number,
): Promise<OutputFile[] | null> {
  const problem = pathProblem(path);
  if (problem !== null) throw new Refusal(`its path ${problem}`);
  const root = join(folders.out, path);
  const stats = await statWithoutLinks(folders, path);
  if (stats === null) return null;
  if (stats.isFile()) return [await describe(output, path.slice(path.lastIndexOf('/') + 1), root, capBytes)];

  const files: OutputFile[] = [];
  let total = 0;
  const pending = [''];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for await (const item of await opendir(join(root, folder))) {
      const relative = folder === '' ? item.name : `${folder}/${item.name}`;
      const flaw = pathProblem(relative);
      if (flaw !== null) throw new Refusal(`the path ${JSON.stringify(relative.slice(0, 200))} ${flaw}`);
      if (item.isDirectory()) pending.push(relative);
      else if (item.isFile()) {
        if (files.length >= room) throw new Refusal(`more than ${maxFiles} files in one attempt`);
        const file = await describe(output, relative, join(root, relative), capBytes - total);
        total += file.entry.size;
        files.push(file);
      } else throw new Refusal(`${JSON.stringify(relative)} is ${kindOf(item)}, not a file or a folder`);
    }
  }
  return files;
}

/** Looks at each folder on the way: the command could have put a link in place of any of them. */
async function statWithoutLinks(folders: AttemptFolders, path: string) {
  const segments = ['out', ...path.split('/')];
  const real = await realpath(folders.root).catch(() => null);
  if (real !== null && real !== folders.root) throw new Refusal("the attempt's folder was replaced");
  let at = folders.root;
  for (const [index, segment] of segments.entries()) {
    at = join(at, segment);
    let stats: Awaited<ReturnType<typeof lstat>>;
    try {
      stats = await lstat(at);
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === 'ENOENT' || code === 'ENOTDIR') return null;
      throw error;
    }
    const last = index === segments.length - 1;
    if (stats.isDirectory() || (last && stats.isFile())) {
      if (last) return stats;
    } else
      throw new Refusal(
        `${segments.slice(1, index + 1).join('/') || 'out'} is ${kindOf(stats)}, not a file or a folder`,
      );
  }
  return null;
}

async function describe(
  output: string,
  relative: string,
  path: string,
  capBytes: number,
): Promise<OutputFile> {
  await using file = await openUnfollowed(path).catch((error: unknown) => {
    if (isOwnLack(error)) throw error;
    throw new Refusal(`${relative} cannot be read (${(error as { code?: string }).code ?? 'unknown'})`);
  });
  const stats = await file.stat();
  if (!stats.isFile()) throw new Refusal(`${relative} is ${kindOf(stats)}, not a file`);
  if (stats.size > capBytes)
    throw new Refusal(`${relative} is ${stats.size} bytes, and the cap leaves ${capBytes}`);
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(1, stats.size)));
  let size = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, size);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(0, bytesRead));
    size += bytesRead;
    if (size > capBytes) throw new Refusal(`${relative} grows past the cap of ${capBytes} bytes`);
  }
  return { entry: { output, path: relative, size, sha256: hash.digest('hex') }, path };
}

/** A link is an error and a pipe does not hang, should the item have been exchanged. */
const openUnfollowed = (path: string) =>
  open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);

interface Kinds {
  isSymbolicLink(): boolean;
  isFIFO(): boolean;
  isSocket(): boolean;
}

function kindOf(item: Kinds): string {
  if (item.isSymbolicLink()) return 'a symbolic link';
  if (item.isFIFO()) return 'a named pipe';
  return item.isSocket() ? 'a socket' : 'a special file';
}
