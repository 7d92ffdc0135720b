import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const byUnits = (a = '', b = ''): number => (a < b ? -1 : a > b ? 1 : 0);
const folder = join(import.meta.dirname, '..', '..', '..', 'src', 'flow');

test('the map of the flow lists exactly the files of the folder', () => {
  const listed = [
    ...readFileSync(join(folder, 'README.md'), 'utf8').matchAll(/^\| \[[a-z-]+\]\(([a-z-]+\.ts)\)/gm),
  ].map((match) => match[1]);
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  expect(listed.toSorted(byUnits)).toEqual(files.toSorted(byUnits));
  expect(new Set(listed).size).toBe(listed.length);
});
