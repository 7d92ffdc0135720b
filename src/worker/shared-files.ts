// Files that many attempts read, such as a definition's own: fetched once, kept by their digest, shared by all slots.
// They are read-only, which keeps honest commands from changing them; a command that runs as this user could. So they
// last no longer than this process, which also spares a check after a crash.
import { chmod, mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '#sonar/platform/ids.ts';
import { removeTree } from './directories.ts';

/** Sets that are kept though nobody uses them: the next attempt of their step is likely near. */
const idleKept = 8;

export interface SharedFiles {
  /**
   * The folder with the files of a digest, filled by `fetch` where it is not there; null where `fetch` says why
   * not. It stays until it is released as often as it was given.
   */
  use<End>(
    digest: string,
    fetch: (folder: string) => Promise<End | null>,
  ): Promise<{ folder: string } | { end: End }>;
  release(digest: string): Promise<void>;
}

interface Entry {
  users: number;
  /** Resolves when it is there, or when the attempt that fetches it has given up. */
  ready: Promise<boolean>;
}

/** `base` is empty and this process's own. */
export function createSharedFiles(base: string): SharedFiles {
  /** In the order of their last use. */
  const entries = new Map<string, Entry>();

  async function fetchInto<End>(
    digest: string,
    fetch: (folder: string) => Promise<End | null>,
  ): Promise<{ folder: string } | { end: End }> {
    const folder = join(base, digest);
    const part = join(base, `${digest}.${newId()}`);
    await mkdir(part, { mode: 0o700 });
    const end = await fetch(part);
    if (end !== null) {
      await removeTree(part);
      return { end };
    }
    await makeReadOnly(part);
    await rename(part, folder);
    await chmod(folder, 0o500);
    return { folder };
  }

  return {
    async use(digest, fetch) {
      for (let known = entries.get(digest); known !== undefined; known = entries.get(digest)) {
        known.users += 1;
        entries.delete(digest);
        entries.set(digest, known);
        if (await known.ready) return { folder: join(base, digest) };
        // Who fetched it gave up, perhaps because its attempt was cancelled: this one tries for itself.
        if (entries.get(digest) === known) entries.delete(digest);
      }
      const { promise: ready, resolve } = Promise.withResolvers<boolean>();
      entries.set(digest, { users: 1, ready });
      let there = false;
      try {
        const result = await fetchInto(digest, fetch);
        there = 'folder' in result;
        return result;
      } finally {
        if (!there) entries.delete(digest);
        resolve(there);
      }
    },
    async release(digest) {
      const entry = entries.get(digest);
      if (entry !== undefined) entry.users -= 1;
      const idle = [...entries].filter(([, { users }]) => users === 0);
      for (const [old] of idle.slice(0, Math.max(0, idle.length - idleKept))) {
        entries.delete(old);
        await removeTree(join(base, old));
      }
    },
  };
}

async function makeReadOnly(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      await makeReadOnly(path);
      await chmod(path, 0o500);
    } else await chmod(path, 0o400);
  }
}
