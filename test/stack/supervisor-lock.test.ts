import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identifyProcess } from '#sonar/stack/process-identity.ts';
import { lockDataDirectory } from '#sonar/stack/supervisor-lock.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();

function dataFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

test('a second supervisor is refused, by the pid of the first, until that one lets go', async () => {
  const data = dataFolder('held');
  const lock = await lockDataDirectory(data);
  await expect(lockDataDirectory(data)).rejects.toMatchObject({
    code: 'already_running',
    message: expect.stringContaining(`process ${process.pid}`),
  });
  lock.release();
  (await lockDataDirectory(data)).release();
});

test('a recycled pid is not believed: same pid, other start', async () => {
  const data = dataFolder('recycled');
  const self = identifyProcess(process.pid);
  writeFileSync(
    join(data, 'supervisor.json'),
    JSON.stringify({ pid: process.pid, startedAt: `${self?.startedAt}0` }),
  );
  await expect(lockDataDirectory(data)).resolves.toBeDefined();
});

test('of several at the same moment exactly one gets it', async () => {
  const data = dataFolder('contended');
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map(() => lockDataDirectory(data)));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});
