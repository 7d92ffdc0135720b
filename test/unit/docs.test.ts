// What the docs name must be there.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

test.each(['README.md', ...globSync('docs/**/*.md', { cwd: root })])(
  '%s names only tests that exist',
  (page) => {
    const named = readFileSync(join(root, page), 'utf8').match(
      /test\/(unit|flow|workflow|replay|contract|e2e|stack|browser)[\w/*.-]*/g,
    );
    const missing = (named ?? []).filter((path) => globSync(path, { cwd: root }).length === 0);
    expect(missing).toEqual([]);
  },
);
