// Files that many attempts read, such as a definition's own: fetched once, kept by their digest, shared by all slots.
// They are read-only, which keeps honest commands from changing them; a command that runs as this user could. So they
// last no longer than this process, which also spares a check after a crash.
import { chmod, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '#sonar/platform/ids.ts';
import { removeTree } from './directories.ts';

/** Sets that are kept though nobody uses them: the next attempt of their step is likely near. */
const idleKept = 8;

export interface SharedFiles {
  /**
   * The folder with the files of a digest, filled by `fetch` where it is not there, or the end that `fetch` says. It
   * stays until it is released as often as it was given.
   */
  use<End>(
    digest: string,
    fetch: (folder: string) => Promise<End | null>,
  ): Promise<{ folder: string } | { end: End }>;
  /** Never throws: what has ended well does not fail for what cannot be removed; that is tried again. */
  release(digest: string): Promise<void>;
}

interface Entry {
  users: number;
  /** Its own for good: what is being removed is in nobody's way who fetches the same again. */
  folder: string;
  /** Resolves when it is there, or when the attempt that fetches it has given up. */
  ready: Promise<boolean>;
}

/** `base` is empty and this process's own; `remove` is for tests. */
export function createSharedFiles(base: string, remove = removeTree): SharedFiles {
  /** In the order of their last use. */
  const entries = new Map<string, Entry>();

  /** Folders that nobody needs and that could not be removed yet. */
  const left = new Set<string>();

  async function removeLeft(): Promise<void> {
    for (const folder of left)
      await remove(folder).then(
        () => left.delete(folder),
        () => undefined,
      );
  }

  async function fetchInto<End>(
    folder: string,
    fetch: (folder: string) => Promise<End | null>,
  ): Promise<{ folder: string } | { end: End }> {
    await mkdir(folder, { mode: 0o700 });
    const end = await fetch(folder);
    if (end !== null) return { end };
    await makeReadOnly(folder);
    await chmod(folder, 0o500);
    return { folder };
  }

  return {
    async use(digest, fetch) {
      for (let known = entries.get(digest); known !== undefined; known = entries.get(digest)) {
        known.users += 1;
        entries.delete(digest);
        entries.set(digest, known);
        if (await known.ready) return { folder: known.folder };
        // Who fetched it gave up, perhaps because its attempt was cancelled: this one tries for itself.
        if (entries.get(digest) === known) entries.delete(digest);
      }
      const { promise: ready, resolve } = Promise.withResolvers<boolean>();
      const folder = join(base, `${digest}.${newId()}`);
      entries.set(digest, { users: 1, folder, ready });
      let there = false;
      try {
        const result = await fetchInto(folder, fetch);
        there = 'folder' in result;
        return result;
      } finally {
        if (!there) entries.delete(digest);
        resolve(there);
        if (!there) {
          left.add(folder);
          await removeLeft();
        }
      }
    },
    async release(digest) {
      const entry = entries.get(digest);
      if (entry !== undefined) entry.users -= 1;
      const idle = [...entries].filter(([, { users }]) => users === 0);
      for (const [old, { folder }] of idle.slice(0, Math.max(0, idle.length - idleKept))) {
        entries.delete(old);
        left.add(folder);
      }
      await removeLeft();
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
