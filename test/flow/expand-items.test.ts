// An expansion goes on where it was: never an item twice, never one left out.
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachHost, eachLine, rowsOfUpstream } from '../fixtures/definition-texts.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { removeObject, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { expand } from '../fixtures/scan-planning.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`);

test('two passes over one expansion at once make every item once', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(5_200) } });
  const pass = await lab.planOnce(scan);
  const elsewhere = Array.from({ length: 4 }, () => lab.with({ database: clone.open(2) }));
  const expanded = await Promise.all(elsewhere.map((other) => expand(other, pass)));
  await lab.plan(scan);
  const tasks = await lab.tasks(scan);
  expect(tasks.map((task) => task.item_ordinal)).toEqual(lines(5_200).map((_, index) => index));
  expect(expanded.reduce((sum, { made }) => sum + made, 0)).toBeLessThanOrEqual(5_200);
});

test('after a crash in the middle the expansion goes on where it was, and what it made stays', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(5_200) } });
  const pass = await lab.planOnce(scan);
  const crashing = faultyDatabase(
    clone.database,
    (statement, time) => statement === 'expansion.insert_tasks' && time === 2,
  );
  await expect(expand(lab.with({ database: crashing }), pass)).rejects.toThrow('injected fault');
  const before = await lab.tasks(scan);
  expect(before).toHaveLength(2_000);
  await lab.plan(scan);
  const after = await lab.tasks(scan);
  expect(after.map((task) => task.item)).toEqual(lines(5_200));
  expect(after.slice(0, 2_000).map((task) => task.task_id)).toEqual(before.map((task) => task.task_id));
});

test('a pass that is told to stop ends after a batch, and the next one goes on', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(5_200) } });
  const pass = await lab.planOnce(scan);
  const stop = new AbortController();
  const stopping = faultyDatabase(clone.database, (statement) => {
    if (statement === 'expansion.insert_tasks') stop.abort();
    return false;
  });
  expect(await expand(lab.with({ database: stopping }), pass, stop.signal)).toEqual({
    made: 2_000,
    more: false,
  });
  await lab.plan(scan);
  expect(await lab.tasks(scan)).toHaveLength(5_200);
});

test('the cap on tasks fails the scan, says so, and cancels what is open', async () => {
  const lab = openLaboratory(clone, objects, { SONAR_SCAN_TASK_CAP: 2_600 });
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(2_601) } });
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Failed');
  const [row] = await clone.database.rows(query`select status, reason from sonar.scan`);
  expect(row).toEqual({
    status: 'Failed',
    reason: 'task_cap_exceeded: step each would take the scan past 2600 tasks',
  });
  const tasks = await lab.tasks(scan);
  expect(tasks).toHaveLength(2_000);
  expect(new Set(tasks.map((task) => `${task.status} ${task.failure_code}`))).toEqual(
    new Set(['Cancelled scan_failed']),
  );
});

test('what the scope does not cover and what is no host never becomes a task: counted, and the first is shown', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachHost, {
    inputs: { hosts: ['a.example.com', 'elsewhere.org', 'bad.example.com', '10.1.2.3', 'not a host', '-oX'] },
    scope: { allow: ['example.com', '10.0.0.0/8'], deny: ['bad.example.com'] },
  });
  await lab.plan(scan);
  expect((await lab.tasks(scan)).map((task) => [task.item_ordinal, task.item])).toEqual([
    [0, 'a.example.com'],
    [3, '10.1.2.3'],
  ]);
  const [step] = await clone.database.rows(query`select refused, note from sonar.scan_step`);
  expect(step).toEqual({ refused: 4, note: 'refused: "elsewhere.org" is outside the scope' });
});

test('an expansion of which every item is refused comes to a no-work task', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachHost, { inputs: { hosts: ['elsewhere.org'] } });
  await lab.plan(scan);
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Completed', no_work: true }]);
  const [step] = await clone.database.rows(query`select refused, state from sonar.scan_step`);
  expect(step).toEqual({ refused: 1, state: 'settled' });
});

test('hostile rows become storable items, and one item over the cap is refused alone', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(rowsOfUpstream.replace('    target: ${item}\n', ''));
  const worker = await lab.worker();
  await lab.plan(scan);
  await lab.place();
  const rows = [
    '{"host":"nul\\u0000 and \\ud800 half"}',
    `{"host":${JSON.stringify(Array.from({ length: 10 }, () => 'x'.repeat(10_000)))}}`,
    '{"host":null}',
    '{"other":"no host"}',
    'no json',
    '{"host":"<script>alert(1)</script>"}',
  ];
  await lab.run((await lab.published(scan))[0]!, worker, { rows: { 'rows.jsonl': rows.join('\n') } });
  await lab.finalize();
  await lab.plan(scan);
  expect((await lab.tasks(scan, 'each')).map((task) => task.item)).toEqual([
    'nul\uFFFD and \uFFFD half',
    '<script>alert(1)</script>',
  ]);
  const [step] = await clone.database.rows(
    query`select refused, note from sonar.scan_step where step = 'each'`,
  );
  expect(step).toEqual({ refused: 1, note: 'refused: an item is larger than 65536 bytes' });
});

test('a source that is gone, or is not what was accepted, fails the scan', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(rowsOfUpstream);
  const worker = await lab.worker();
  await lab.plan(scan);
  await lab.place();
  await lab.run((await lab.published(scan))[0]!, worker, {
    rows: { 'rows.jsonl': '{"host":"a.example.com"}' },
  });
  await lab.finalize();
  const [file] = await clone.database.rows<{ object_key: string }>(
    query`select object_key from sonar.output_file`,
  );
  await removeObject(file!.object_key);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Failed');
  const [row] = await clone.database.rows(query`select status, reason from sonar.scan`);
  expect(row).toEqual({
    status: 'Failed',
    reason: `source_lost: step each: no object ${file!.object_key} in the store`,
  });
});

test('a scan that stops running in the middle gets no further tasks', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachLine, { inputs: { lines: lines(5_200) } });
  const pass = await lab.planOnce(scan);
  const pausing = faultyDatabase(clone.database, () => false);
  let batches = 0;
  pausing.transaction = async (work) => {
    const result = await clone.database.transaction(work);
    batches += 1;
    if (batches === 1) await clone.database.execute(query`update sonar.scan set status = 'Paused'`);
    return result;
  };
  expect(await expand(lab.with({ database: pausing }), pass)).toEqual({ made: 2_000, more: false });
  expect(await lab.tasks(scan)).toHaveLength(2_000);
});
