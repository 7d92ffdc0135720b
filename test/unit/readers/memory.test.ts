// Readers hold a bounded part of their input: a child with a small heap reads many times that heap.
import { spawnSync } from 'node:child_process';
import type { ShapeName } from './read-generated.ts';

// Each test starts a process, which may wait for its turn on a loaded machine.
jest.setTimeout(120_000);

const heapMb = 24;
/** What Node itself takes, the young generation beside the heap, and chunks that wait to be collected. */
const residentLimitMb = 256;

// The tools' readers do more with each row: less is enough to be many times the heap.
test.each<[ShapeName, number, { row?: number; bad: number }]>([
  ['lines', 100, { bad: 0 }],
  ['jsonl', 100, { bad: 0 }],
  ['json', 100, { bad: 0 }],
  ['json-on-one-line', 50, { bad: 0 }],
  ['nmap-xml', 100, { bad: 0 }],
  ['csv', 50, { bad: 0 }],
  ['httpx', 30, { bad: 0 }],
  ['ffuf', 30, { bad: 0 }],
  ['one-line', 100, { row: 0, bad: 1 }],
  ['one-element', 100, { row: 1, bad: 1 }],
  ['one-quote', 30, { bad: 1 }],
])('memory stays flat: %s, %i MB', (shape, megabytes, expected) => {
  const script = require.resolve('./read-generated.ts');
  const flags = [`--max-old-space-size=${heapMb}`, '--disable-warning=ExperimentalWarning'];
  const child = spawnSync(process.execPath, [...flags, script, shape, String(megabytes)], {
    encoding: 'utf8',
  });
  expect(child.stderr).toBe('');
  const result = JSON.parse(child.stdout) as Record<string, number>;
  expect(result).toMatchObject({ ...expected, warning: 0 });
  expect((result.row ?? 0) + (result.bad ?? 0)).toBeGreaterThan(0);
  expect(result.residentMb).toBeLessThan(residentLimitMb);
});
