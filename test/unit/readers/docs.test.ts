import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readersPage } from '../../../scripts/readers-page.ts';
import { sample } from './tool-samples.ts';

test('docs/readers.md says what the catalog and the readers do; write it anew by scripts/write-readers-page.ts', async () => {
  const written = readFileSync(join(__dirname, '../../../docs/readers.md'), 'utf8');
  expect(written).toBe(await readersPage(sample));
});
