// Readers hold a bounded part of their input: a child with a small heap reads 50 MB, many times that heap.
import { spawnSync } from 'node:child_process';

// Each test starts processes, which may wait for their turn on a loaded machine.
jest.setTimeout(60_000);

const megabytes = 50;

test.each(['lines', 'jsonl', 'nmap-xml', 'one-line'])('memory stays flat over 50 MB: %s', (shape) => {
  const script = require.resolve('./read-generated.ts');
  const flags = ['--max-old-space-size=24', '--disable-warning=ExperimentalWarning'];
  const child = spawnSync(process.execPath, [...flags, script, shape, String(megabytes)], {
    encoding: 'utf8',
  });
  expect(child.stderr).toBe('');
  const { events, residentMb } = JSON.parse(child.stdout) as { events: number; residentMb: number };
  expect(events).toBeGreaterThan(0);
  expect(residentMb).toBeLessThan(200);
});
