// Planning makes what is missing and nothing twice, however often and from however many places it is asked.

import { planScan } from '#sonar/flow/plan-scan.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine, fanOutAndIn, oneStep, rowsOfAll, rowsOfUpstream } from '../fixtures/definition-texts.ts';
import { openLaboratory, type TaskRow } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const lab = () => openLaboratory(clone, objects);
const items = (tasks: TaskRow[]) => tasks.map((task) => task.item);

test('a root step without foreach gets one task', async () => {
  const { scan, plan, tasks } = lab();
  const started = await scan(oneStep);
  expect(await plan(started)).toBe(1);
  expect(await tasks(started)).toMatchObject([
    { step: 'only', status: 'Pending', item: null, item_ordinal: null },
  ]);
  expect(await plan(started)).toBe(0);
});

test('each line of an input becomes a task with its ordinal', async () => {
  const { scan, plan, tasks } = lab();
  const started = await scan(eachLine, { inputs: { lines: ['a', '08', '1.10', 'a'] } });
  expect(await plan(started)).toBe(4);
  expect((await tasks(started)).map((task) => [task.item_ordinal, task.item])).toEqual([
    [0, 'a'],
    [1, '08'],
    [2, '1.10'],
    [3, 'a'],
  ]);
});

test('an empty list comes to one no-work task, and the scan of no work ends Completed', async () => {
  const { scan, plan, tasks, settle } = lab();
  const started = await scan(fanOutAndIn);
  await plan(started);
  expect((await tasks(started)).map((task) => [task.step, task.status, task.no_work])).toEqual([
    ['each', 'Completed', true],
    ['child', 'Completed', true],
    ['report', 'Completed', true],
  ]);
  expect(await settle(started)).toBe('Completed');
});

test('a Single step gets one child a completed parent, with its parent', async () => {
  const { scan, plan, tasks, worker, place, published, run } = lab();
  const live = await worker();
  const started = await scan(fanOutAndIn, { inputs: { lines: ['a', 'b', 'c'] } });
  await plan(started);
  await place();
  const [first, second, third] = await published(started);
  await run(first!, live, { found: { 'found.txt': 'x' } });
  await plan(started);
  expect((await tasks(started, 'child')).map((task) => task.parent_task_id)).toEqual([first!.task_id]);
  await run(second!, live);
  await run(third!, live, {}, { outcome: 'failed', exitCode: 1 });
  await plan(started);
  await plan(started);
  expect((await tasks(started, 'child')).map((task) => task.parent_task_id)).toEqual([
    first!.task_id,
    second!.task_id,
  ]);
});

test('a child never starts on a result that is not read yet', async () => {
  const { scan, plan, tasks, worker, place, published, run, finalize } = lab();
  const live = await worker();
  const started = await scan(rowsOfUpstream);
  await plan(started);
  await place();
  const [list] = await published(started);
  await run(list!, live, { rows: { 'rows.jsonl': '{"host":"a.example.com"}\n{"host":"b.example.com"}\n' } });
  await plan(started);
  expect(await tasks(started, 'each')).toEqual([]);
  await finalize();
  await plan(started);
  expect(items(await tasks(started, 'each'))).toEqual(['a.example.com', 'b.example.com']);
});

test('rows of an upstream output become tasks; an upstream output without rows comes to a no-work task', async () => {
  const { scan, plan, tasks, worker, place, published, run, finalize, settle } = lab();
  const live = await worker();
  const started = await scan(rowsOfUpstream);
  await plan(started);
  await place();
  await run((await published(started))[0]!, live, { rows: { 'rows.jsonl': '' } });
  await finalize();
  await plan(started);
  expect((await tasks(started)).map((task) => [task.step, task.status, task.no_work])).toEqual([
    ['list', 'Completed', false],
    ['each', 'Completed', true],
    ['report', 'Completed', true],
  ]);
  expect(await settle(started)).toBe('Completed');
});

test('a Single step that also waits for All gets a child of each parent that finished before it could begin', async () => {
  const { scan, plan, tasks, worker, place, published, run } = lab();
  const live = await worker();
  const source = `${fanOutAndIn}  gate:
    tags: [t]
    command: ["true"]
  late:
    tags: [t]
    needs: {each: single, gate: all}
    command: ["true"]
`;
  const started = await scan(source, { inputs: { lines: ['a', 'b'] } });
  await plan(started);
  await place();
  const parents = await published(started, 'each');
  for (const attempt of parents) await run(attempt, live);
  await plan(started);
  expect(await tasks(started, 'late')).toEqual([]);
  await run((await published(started, 'gate'))[0]!, live);
  await plan(started);
  const late = await tasks(started, 'late');
  expect(late.map((task) => String(task.parent_task_id)).toSorted()).toEqual(
    parents.map((task) => task.task_id).toSorted(),
  );
});

test('an All step waits for the last task of the step it needs', async () => {
  const { scan, plan, tasks, worker, place, published, run } = lab();
  const live = await worker();
  const started = await scan(fanOutAndIn, { inputs: { lines: ['a', 'b'] } });
  await plan(started);
  await place();
  for (const attempt of await published(started, 'each')) await run(attempt, live);
  await plan(started);
  await place();
  const [one, other] = await published(started, 'child');
  await run(one!, live, { seen: { 'seen.txt': '1' } });
  await plan(started);
  expect(await tasks(started, 'report')).toEqual([]);
  await run(other!, live, { seen: { 'seen.txt': '2' } });
  await plan(started);
  expect(await tasks(started, 'report')).toMatchObject([{ status: 'Pending', parent_task_id: null }]);
});

test('an All step pins its sources in the order of their items, whatever finished first, and merges their rows in it', async () => {
  const { database, scan, plan, tasks, worker, place, published, run, finalize } = lab();
  const live = await worker();
  const started = await scan(rowsOfAll, { inputs: { lines: ['a', 'b', 'c'] } });
  await plan(started);
  await place();
  const attempts = await published(started);
  for (const [index, attempt] of [...attempts.entries()].toReversed())
    await run(attempt, live, { rows: { 'rows.txt': `${index}-1\n${index}-2\n` } });
  await finalize();
  await plan(started);
  const pinned = await database.rows<{ task_id: string }>(
    query`select task_id from sonar.pinned_source where scan_id = ${started.scan_id} order by ordinal`,
  );
  const order = pinned.map((row) => row.task_id);
  expect(order).toEqual(attempts.map((attempt) => attempt.task_id));
  const expanded = await tasks(started, 'each');
  expect(expanded.map((task) => task.item_ordinal)).toEqual([0, 1, 2, 3, 4, 5]);
  const merged = order.flatMap((id) => {
    const index = attempts.findIndex((attempt) => attempt.task_id === id);
    return [{ line: `${index}-1` }, { line: `${index}-2` }];
  });
  expect(items(expanded)).toEqual(merged);
});

test('All rests on the tasks that did real work, not on those without work', async () => {
  const { database, scan, plan, tasks, worker, place, published, run, finalize } = lab();
  const live = await worker();
  const source = rowsOfUpstream
    .replace('steps:', 'inputs: {lines: {type: lines, default: ""}}\nsteps:')
    .replace('    command: [list,', '    foreach: {in: inputs.lines}\n    command: [list, "${item}",');
  const started = await scan(source, { inputs: { lines: ['a', 'b'] } });
  await plan(started);
  await place();
  const [empty, full] = await published(started);
  await run(empty!, live, { rows: { 'rows.jsonl': '' } });
  await run(full!, live, { rows: { 'rows.jsonl': '{"host":"a.example.com"}' } });
  await finalize();
  await plan(started);
  await place();
  const [each] = await published(started, 'each');
  await run(each!, live);
  await plan(started);
  expect((await tasks(started, 'each')).map((task) => `no work: ${task.no_work}`).toSorted()).toEqual([
    'no work: false',
    'no work: true',
  ]);
  expect(await database.rows(query`select task_id from sonar.pinned_source`)).toEqual([
    { task_id: each!.task_id },
  ]);
  expect(await tasks(started, 'report')).toMatchObject([{ status: 'Pending', no_work: false }]);
});

test('an upstream task without a row adds nothing, and the merged stream goes on with the next', async () => {
  const { scan, plan, tasks, worker, place, published, run, finalize } = lab();
  const live = await worker();
  const started = await scan(rowsOfAll, { inputs: { lines: ['a', 'b'] } });
  await plan(started);
  await place();
  const [empty, full] = await published(started);
  await run(empty!, live, { rows: { 'rows.txt': '' } });
  await run(full!, live, { rows: { 'rows.txt': 'x\n' } });
  await finalize();
  await plan(started);
  expect(items(await tasks(started, 'each'))).toEqual([{ line: 'x' }]);
  await place();
  expect(await tasks(started, 'each')).toMatchObject([{ status: 'Published' }]);
});

test('many passes at once, on connections of their own, make one child a parent and step', async () => {
  const here = lab();
  const { scan, plan, tasks, worker, place, published, run } = here;
  const live = await worker();
  const started = await scan(fanOutAndIn, {
    inputs: { lines: Array.from({ length: 20 }, (_, n) => `l${n}`) },
  });
  await plan(started);
  await place();
  for (const attempt of await published(started)) await run(attempt, live);
  const elsewhere = Array.from({ length: 8 }, () => clone.open(1));
  await Promise.all(elsewhere.map((database) => planScan({ ...here, database }, started.scan_id)));
  await plan(started);
  const parents = (await tasks(started, 'child')).map((task) => task.parent_task_id);
  expect(new Set(parents).size).toBe(20);
  expect(parents).toHaveLength(20);
});

test('the database itself refuses a second child of a parent, step and item', async () => {
  const { database, scan, plan } = lab();
  const started = await scan(oneStep);
  await plan(started);
  const again = database.execute(query`
    insert into sonar.task (task_id, workspace_id, scan_id, step, status, definition_revision)
    values (${newId()}, 'default', ${started.scan_id}, 'only', 'Pending', 1)`);
  await expect(again).rejects.toMatchObject({ code: '23505', constraint: 'task_identity' });
});
