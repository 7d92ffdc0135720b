import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '#sonar/platform/ids.ts';
import { forgetResult, storedResults, storeResult } from '#sonar/worker/result-store.ts';

const directory = mkdtempSync(join(tmpdir(), 'sonar-results-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('a stored result comes back as it was, is closed to others, and half written ones are passed over', async () => {
  const result = { v: 1 as const, attemptId: newId<string>(), credential: 'c', body: '{"a":"é"}' };
  await storeResult(directory, result);
  writeFileSync(join(directory, `${newId()}.json`), '{"v":1,"attem');
  writeFileSync(join(directory, `${newId()}.json.part`), JSON.stringify(result));
  writeFileSync(join(directory, `${newId()}.json`), JSON.stringify({ ...result, v: 2 }));
  expect(await storedResults(directory)).toEqual([result]);
  expect(statSync(join(directory, `${result.attemptId}.json`)).mode & 0o077).toBe(0);
  await forgetResult(directory, result.attemptId);
  await forgetResult(directory, result.attemptId);
  expect(await storedResults(directory)).toEqual([]);
  expect(readdirSync(directory)).toHaveLength(3);
});
