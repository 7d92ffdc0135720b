import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeLock } from '#sonar/worker/lock.ts';

const directory = mkdtempSync(join(tmpdir(), 'sonar-lock-'));
afterAll(() => rmSync(directory, { recursive: true }));

test('a name is taken once, also within one process', async () => {
  const lock = await takeLock(directory, 'w');
  await expect(takeLock(directory, 'w')).rejects.toMatchObject({ code: 'conflict' });
  await lock.release();
  expect(readdirSync(directory)).toEqual([]);
});

test('a folder that takes no file is what is wrong, not another worker', async () => {
  await expect(takeLock(join(directory, 'gone'), 'w')).rejects.toMatchObject({
    code: 'configuration',
    message: expect.stringMatching(/gone cannot be written \(ENOENT/) as unknown,
  });
});
