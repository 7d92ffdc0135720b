import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { searchAttributes } from '#sonar/contracts/names.ts';
import { readTemporalDevFile } from '#sonar/stack/temporal-dev-file.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();

test('temporal-dev.yaml declares every search attribute that Sonar sets', () => {
  const declared = readTemporalDevFile();
  expect(Object.keys(declared.searchAttributes).toSorted()).toEqual(
    Object.values(searchAttributes).toSorted(),
  );
  expect(declared.retention).toBe(7 * 24 * 3_600_000);
});

test('a mistake in it is named by its field', () => {
  const file = join(folder, 'temporal-dev.yaml');
  writeFileSync(file, 'namespace: x\nretention: a week\nport: 7233\n');
  expect(() => readTemporalDevFile(file)).toThrow(/retention[^]*port/);
});
