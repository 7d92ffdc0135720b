// Two scans of one definition, compared: what is added, changed, gone, and what cannot be said.
import type { StartScan } from '#sonar/contracts/scan-api.ts';
import { compareScans, coverageOf } from '#sonar/flow/compare-scans.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { type Laboratory, type Outputs, openLaboratory } from '../fixtures/laboratory.ts';
import type { LiveWorker } from '../fixtures/live-worker.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const source = `sonar: 1
name: compared
inputs: {lines: {type: lines, required: true}}
steps:
  find:
    tags: [t]
    foreach: {in: inputs.lines}
    command: [find, "\${item}"]
    outputs: {names: {path: n.txt, read: {format: lines, record: domain}}}
  probe:
    tags: [t]
    needs: {find: single}
    foreach: {in: find.names, pick: line}
    command: [probe, "\${item}"]
    outputs: {web: {path: w.jsonl, read: {format: jsonl, record: endpoint, fields: {url: url, title: title}}, optional: true}}`;

interface Answers {
  names: string[];
  /** By name: the title of its page; null: none, 'fails': the command fails. */
  pages: Record<string, string | null>;
}

let lab: Laboratory;
let worker: LiveWorker;
beforeEach(async () => {
  lab = openLaboratory(clone, objects);
  worker = await lab.worker();
});

async function ranScan({ names, pages }: Answers, request: Partial<StartScan> = {}): Promise<ScanRow> {
  const scan = await lab.scan(source, { inputs: { lines: ['x', 'y'] }, ...request });
  for (const step of ['find', 'probe']) {
    await lab.plan(scan);
    await lab.place();
    for (const attempt of await lab.published(scan, step)) {
      const [task] = await clone.database.rows<{ item: string; item_ordinal: number }>(
        query`select item, item_ordinal from sonar.task where attempt_id = ${attempt.attempt_id}`,
      );
      if (step === 'find') {
        const text = task?.item_ordinal === 0 ? `${names.join('\n')}\n` : '';
        await lab.run(attempt, worker, { names: { 'n.txt': text } });
        continue;
      }
      const title = pages[String(task?.item)] ?? null;
      const url = `http://${task?.item}/`;
      const web: Outputs =
        title === null || title === 'fails' ? {} : { web: { 'w.jsonl': JSON.stringify({ url, title }) } };
      await lab.run(attempt, worker, web, title === 'fails' ? { outcome: 'failed', exitCode: 1 } : {});
    }
    while (await lab.finalize());
  }
  await lab.plan(scan);
  await lab.settle(scan);
  return scan;
}

async function differences(from: ScanRow, to: ScanRow, limit = 100): Promise<string[]> {
  const { coverage } = await coverageOf(clone.database, from, to);
  const lines: string[] = [];
  let after: { type: string; key: string } | null = { type: '', key: '' };
  while (after !== null) {
    const page: Awaited<ReturnType<typeof compareScans>> = await compareScans(
      clone.database,
      { from, to, coverage },
      { type: null, change: null },
      after,
      limit,
    );
    for (const { type, key, difference } of page.items)
      lines.push(
        `${difference.change} ${type} ${key}${'reason' in difference ? `: ${difference.reason}` : ''}`,
      );
    after = page.next;
  }
  return lines;
}

const first: Answers = {
  names: ['a.example.com', 'b.example.com'],
  pages: { 'a.example.com': 'A', 'b.example.com': 'B' },
};

test('added, changed and gone, where both came wholly to their end', async () => {
  const before = await ranScan(first);
  const after = await ranScan({
    names: ['a.example.com', 'c.example.com'],
    pages: { 'a.example.com': 'A2' },
  });
  const expected = [
    'gone domain b.example.com',
    'added domain c.example.com',
    'changed endpoint http://a.example.com/',
    'gone endpoint http://b.example.com/',
  ];
  expect(await differences(before, after)).toEqual(expected);
  expect(await differences(before, after, 1)).toEqual(expected);
  expect(await differences(before, before)).toEqual([]);
  expect((await coverageOf(clone.database, before, after)).unjudged).toEqual([]);
});

test('what only a step with a failed task showed is unknown, not gone; what another step showed is judged', async () => {
  const before = await ranScan(first);
  const after = await ranScan({ names: ['a.example.com'], pages: { 'a.example.com': 'fails' } });
  const reason = 'in the later scan `probe` has 1 failed task(s)';
  expect(await differences(before, after)).toEqual([
    'gone domain b.example.com',
    `unknown endpoint http://a.example.com/: ${reason}`,
    `unknown endpoint http://b.example.com/: ${reason}`,
  ]);
  expect((await coverageOf(clone.database, before, after)).unjudged).toEqual([{ step: 'probe', reason }]);
  // The other way round the earlier one is the one that failed: what it saw and the later did not is as unknown.
  expect(await differences(after, before)).toEqual([
    'added domain b.example.com',
    'added endpoint http://a.example.com/',
    'added endpoint http://b.example.com/',
  ]);
});

test('a scan that still runs, or was given less, or may touch less, leaves all absences unknown', async () => {
  const before = await ranScan(first);
  const running = await lab.scan(source, { inputs: { lines: ['x', 'y'] } });
  expect(await differences(before, running)).toContain(
    'unknown domain b.example.com: in the later scan `find` has not come to its end',
  );
  const less = await ranScan({ names: ['a.example.com'], pages: {} }, { inputs: { lines: ['y'] } });
  expect(await differences(before, less)).toContain(
    'unknown domain b.example.com: the later scan was not given all of the input `lines`',
  );
  const more = await ranScan({ names: ['a.example.com'], pages: {} }, { inputs: { lines: ['z', 'y', 'x'] } });
  expect(await differences(before, more)).toContain('gone domain b.example.com');
  const narrow = await ranScan(
    { names: ['a.example.com'], pages: {} },
    { scope: { allow: ['example.com', '10.0.0.0/8', '127.0.0.0/8'], deny: ['b.example.com'] } },
  );
  expect(await differences(before, narrow)).toContain(
    'unknown domain b.example.com: the scope of the later scan does not have all that the earlier one had',
  );
});

test('records of a step that could not all be read, or were poisoned, are unknown', async () => {
  const before = await ranScan(first);
  const after = await ranScan({ names: ['a.example.com', '-bad-'], pages: { 'a.example.com': 'A' } });
  expect(await differences(before, after)).toContain(
    'unknown domain b.example.com: in the later scan `find` printed records that could not be read',
  );
  const poisoned = await ranScan({ names: ['-bad-'], pages: {} });
  expect((await differences(before, poisoned))[0]).toMatch(/^unknown domain a\.example\.com: /);
});
