// Files that many attempts share: given while they are needed, removed when they are in nobody's way.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeTree } from '#sonar/worker/directories.ts';
import { createSharedFiles, type SharedFiles } from '#sonar/worker/shared-files.ts';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'sonar-shared-'));
});
afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

const one = async (folder: string): Promise<null> => {
  await writeFile(join(folder, 'f'), 'x');
  return null;
};
const folderOf = async (shared: SharedFiles, digest: string): Promise<string> => {
  const used = await shared.use(digest, one);
  return 'folder' in used ? used.folder : '';
};

/** As many idle sets as are kept beside the one that goes. */
async function crowd(shared: SharedFiles): Promise<void> {
  for (let other = 0; other < 8; other += 1) {
    await shared.use(`other${other}`, one);
    await shared.release(`other${other}`);
  }
}

test('a removal that is under way is in nobody’s way who fetches the same set, and takes nothing of it', async () => {
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const shared = createSharedFiles(base, async (path) => {
    begun.resolve();
    await goOn.promise;
    await removeTree(path);
  });
  const old = await folderOf(shared, 'first');
  await shared.release('first');
  const removing = crowd(shared);
  await begun.promise;
  const fresh = await folderOf(shared, 'first');
  goOn.resolve();
  await removing;
  expect([existsSync(join(fresh, 'f')), existsSync(old)]).toEqual([true, false]);
});

test('what cannot be removed fails nobody, and is removed later', async () => {
  let refuses = true;
  const shared = createSharedFiles(base, (path) =>
    refuses ? Promise.reject(new Error('EIO')) : removeTree(path),
  );
  const old = await folderOf(shared, 'first');
  await shared.release('first');
  await crowd(shared);
  expect(existsSync(old)).toBe(true);
  refuses = false;
  await crowd(shared);
  expect(existsSync(old)).toBe(false);
});

test('nothing of a fetch that failed stays, and who comes next fetches for itself', async () => {
  const shared = createSharedFiles(base);
  const failing = shared.use('a', async (folder) => {
    mkdirSync(join(folder, 'half'));
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await shared.use('a', () => Promise.resolve('gave up' as const))).toEqual({ end: 'gave up' });
  expect(readdirSync(base)).toEqual([]);
  expect(readdirSync(await folderOf(shared, 'a'))).toEqual(['f']);
});
