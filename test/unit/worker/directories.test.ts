import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '#sonar/platform/errors.ts';
import { makeDirectories, removeTree } from '#sonar/worker/directories.ts';

const directory = mkdtempSync(join(tmpdir(), 'sonar-directories-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('a folder goes whatever its permissions are, and what its links point to stays', async () => {
  const outside = join(directory, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'kept'), '');
  const tree = join(directory, 'tree');
  mkdirSync(join(tree, 'closed', 'inner'), { recursive: true });
  symlinkSync(outside, join(tree, 'closed', 'link'));
  symlinkSync(outside, join(directory, 'root-link'));
  chmodSync(join(tree, 'closed'), 0);
  await removeTree(tree);
  await removeTree(join(directory, 'root-link'));
  await removeTree(join(directory, 'never-there'));
  expect([
    existsSync(tree),
    existsSync(join(directory, 'root-link')),
    existsSync(join(outside, 'kept')),
  ]).toEqual([false, false, true]);
});

test('a tree that is deeper than a path may be long goes, with closed folders and names that are no UTF-8', async () => {
  const root = join(directory, 'deep');
  mkdirSync(root);
  const script = `
import os, sys
os.chdir(sys.argv[1])
for i in range(60):
    os.mkdir('d' * 200); os.mkdir('e' * 200); os.chdir('d' * 200)
    open(b'\\xff' * 10, 'w').close()
    if i % 20 == 19:
        os.mkdir('closed'); os.chmod('closed', 0)
os.chmod('.', 0)
`;
  execFileSync('python3', ['-c', script, root]);
  const end = await removeTree(root).then(
    () => 'removed',
    (error: unknown) => messageOf(error).slice(0, 80),
  );
  const left = existsSync(root);
  execFileSync('rm', ['-rf', root]);
  expect([end, left]).toEqual(['removed', false]);
});

test("a worker's folders are closed to other users and given by their real path", async () => {
  mkdirSync(join(directory, 'real'));
  symlinkSync(join(directory, 'real'), join(directory, 'linked'));
  const made = await makeDirectories(join(directory, 'linked'), 'w1');
  expect(made.work).toBe(join(directory, 'real', 'w1', 'work'));
  for (const path of Object.values(made)) expect(statSync(path).mode & 0o077).toBe(0);
});
