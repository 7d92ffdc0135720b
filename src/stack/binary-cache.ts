import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** A half-made entry this old belongs to a start that was killed: no download takes so long. */
const abandonedAfterMs = 60 * 60_000;
const partialPrefix = '.partial-';

/** The folder of Sonar's downloads: `sonar` in the user's cache folder. */
export function cacheDirectory(environment: NodeJS.ProcessEnv): string {
  const base = environment['XDG_CACHE_HOME'] || join(environment['HOME'] || homedir(), '.cache');
  return join(base, 'sonar');
}

/**
 * The complete entry `key` of the cache. `fill` makes it in a folder of its own, which is put in place by one rename:
 * an entry is whole or absent, and starts at the same time cannot spoil each other's; the first one in place wins.
 */
export async function ensureCached(
  cache: string,
  key: string,
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  const entry = join(cache, key);
  if (existsSync(entry)) return entry;
  mkdirSync(cache, { recursive: true });
  dropAbandoned(cache);
  const partial = join(cache, `${partialPrefix}${randomUUID()}`);
  mkdirSync(partial);
  try {
    await fill(partial);
    try {
      renameSync(partial, entry);
    } catch (fault) {
      if (!existsSync(entry)) throw fault;
    }
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return entry;
}

function dropAbandoned(cache: string): void {
  for (const name of readdirSync(cache)) {
    if (!name.startsWith(partialPrefix)) continue;
    const path = join(cache, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > abandonedAfterMs) rmSync(path, { recursive: true, force: true });
  }
}
