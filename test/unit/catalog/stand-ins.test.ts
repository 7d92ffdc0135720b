// Programs that stand in for tools which cannot be had: a definition with a wrong argv must fail its test by them.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(__dirname, '../../fixtures/tools');
const tools = readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
  entry.isFile() ? [entry.name] : [],
);
/** gowitness has commands before its flags. */
const before: Record<string, string[]> = { gowitness: ['scan', 'file'] };

test.each(tools)('%s says in its head that it stands in', (tool) => {
  const [, head = ''] = readFileSync(join(folder, tool), 'utf8').split('\n');
  expect(head).toMatch(/^\/\/ Stand-in for /);
});

test.each(tools.filter((tool) => tool !== 'report'))(
  '%s refuses a flag that its tool does not document',
  (tool) => {
    const words = [...(before[tool] ?? []), '-no-such-flag'];
    const { status, stderr } = spawnSync(process.execPath, [join(folder, tool), ...words], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([2, `${tool}: flag provided but not defined: -no-such-flag\n`]);
  },
);
