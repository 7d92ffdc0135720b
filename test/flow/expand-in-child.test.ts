// An expansion in a process that is killed, and in one with a heap that is smaller than its list.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachHost } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { storeFile } from '../fixtures/stored-file.ts';
import type { Said } from './expand-in-child.ts';

// Each test starts processes, which may wait for their turn on a loaded machine.
jest.setTimeout(180_000);

const clone = useClonedDatabase();
const objects = useObjectStore();

const heapMb = 48;
/** What Node itself takes, the AWS client, the young generation beside the heap, and chunks that wait to be collected. */
const residentLimitMb = 320;

/** Runs until it ends, or until it has committed so often: then it is killed. */
async function expandInChild(
  scan: ScanRow,
  killAfterCommits = Number.POSITIVE_INFINITY,
): Promise<{ signal: string | null; stderr: string; last: Said }> {
  const flags = [`--max-old-space-size=${heapMb}`, '--disable-warning=ExperimentalWarning'];
  const child = spawn(process.execPath, [...flags, require.resolve('./expand-in-child.ts'), scan.scan_id], {
    env: { ...process.env, DATABASE: clone.url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<string | null>((resolve) => child.once('close', (_, signal) => resolve(signal)));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  let last: Said = {};
  let commits = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    last = JSON.parse(line) as Said;
    commits += last.committed ? 1 : 0;
    if (commits >= killAfterCommits) child.kill('SIGKILL');
  }
  return { signal: await ended, stderr, last };
}

test('a process that is killed half way and another one after it make each item exactly once', async () => {
  const lab = openLaboratory(clone, objects);
  const hosts = Array.from({ length: 20_000 }, (_, n) => `host-${n}.example.com`);
  const sha256 = await storeFile(lab, hosts.join('\n'));
  const scan = await lab.scan(eachHost.replace('in: inputs.hosts', 'in: inputs.hosts, unique: true'), {
    inputs: { hosts: { sha256 } },
  });
  expect(await expandInChild(scan, 5)).toMatchObject({ signal: 'SIGKILL' });
  const before = await lab.tasks(scan);
  expect(before.length).toBeGreaterThan(0);
  expect(before.length).toBeLessThan(20_000);
  expect(await expandInChild(scan)).toMatchObject({
    signal: null,
    stderr: '',
    last: { made: 20_000 - before.length },
  });
  const after = await lab.tasks(scan);
  expect(after.map((task) => task.item)).toEqual(hosts);
  expect(after.map((task) => task.item_ordinal)).toEqual(hosts.map((_, index) => index));
  expect(after.slice(0, before.length).map((task) => task.task_id)).toEqual(
    before.map((task) => task.task_id),
  );
});

test('memory stays flat over a list that is larger than the heap', async () => {
  const lab = openLaboratory(clone, objects);
  const outside = Buffer.from(`${'outside.'.repeat(62)}org\n`.repeat(5_000));
  const inside = Buffer.from(Array.from({ length: 100 }, (_, n) => `h${n}.example.com\n`).join(''));
  const list = Buffer.concat([...Array.from({ length: 22 }, () => outside), inside]);
  expect(list.length).toBeGreaterThan(heapMb * 1024 * 1024);
  const scan = await lab.scan(eachHost, { inputs: { hosts: { sha256: await storeFile(lab, list) } } });
  const { stderr, last } = await expandInChild(scan);
  expect([stderr, last.made]).toEqual(['', 100]);
  expect(last.residentMb).toBeLessThan(residentLimitMb);
  const [step] = await clone.database.rows(query`select refused from sonar.scan_step`);
  expect(step).toEqual({ refused: 110_000 });
});
