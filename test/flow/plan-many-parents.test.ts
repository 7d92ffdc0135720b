// Every finished task gets its child, however many there are and however late the child's step begins.
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const twoPairs = `
sonar: 1
name: two-pairs
inputs: {many: {type: lines}, few: {type: lines}}
steps:
  u1: {tags: [t], foreach: {in: inputs.many}, command: [probe, "\${item}"]}
  u2: {tags: [t], foreach: {in: inputs.few}, command: [probe, "\${item}"]}
  c1: {tags: [t], needs: {u1: single}, command: [look]}
  c2: {tags: [t], needs: {u2: single}, command: [look]}
`;
/** c cannot begin before r has settled, and then owes a child to all that u has finished meanwhile. */
const lateChild = `
sonar: 1
name: late-child
steps:
  u: {tags: [t], command: [probe]}
  r: {tags: [t], command: [probe]}
  c: {tags: [t], needs: {u: single, r: all}, command: [look]}
`;
/** The same with an expansion for each parent instead of a child. */
const lateExpansion = `
sonar: 1
name: late-expansion
steps:
  u: {tags: [t], command: [list, "\${out.rows}"], outputs: {rows: {path: rows.txt, optional: true, read: lines}}}
  r: {tags: [t], command: [probe]}
  c: {tags: [t], needs: {u: single, r: all}, foreach: {in: u.rows}, command: [look, "\${item.line}"]}
`;
const lines = (count: number) => Array.from({ length: count }, (_, index) => `line-${index}`);

/** As if the results of all Pending tasks had come in since the last plan. */
const finishAll = () =>
  clone.database.execute(query`
    update sonar.task
    set status = 'Completed', tag = 't', published_at = now(), started_at = now(), finished_at = now(), accepted_attempt_id = gen_random_uuid(),
        accepted_digest = 'd', accepted_sequence = nextval('sonar.acceptance_sequence'), plan_due = true
    where status = 'Pending'`);

/** No-work outcomes with ids before those of all real tasks: a page of parents has nothing else. */
const insertIdleParents = (scan: ScanRow, count: number) =>
  clone.database.execute(query`
    insert into sonar.task (task_id, workspace_id, scan_id, step, item_ordinal, status, no_work, finished_at, definition_revision)
    select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'default', ${scan.scan_id}, 'u', n, 'Completed', true, now(), 1
    from generate_series(1, ${count}::integer) as n`);

/** How many tasks of each step that others rest on there are, and how many of them have exactly one child. */
const parents = () =>
  clone.database.rows(query`
    select step, no_work, count(*) as parents, count(*) filter (where children = 1) as with_child
    from (select p.step, p.no_work, (select count(*) from sonar.task c where c.parent_task_id = p.task_id) as children
          from sonar.task p where p.step like 'u%') counted
    group by 1, 2 order by 1, 2`);

/** u has 1,500 outcomes without work and a real one after them, all planned before r settles. */
async function beforeLateStep(source: string): Promise<{ lab: Laboratory; scan: ScanRow }> {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(source);
  await lab.plan(scan);
  await lab.place();
  const [u] = await lab.published(scan, 'u');
  await lab.run(u!, worker, source === lateExpansion ? { rows: { 'rows.txt': 'a\nb\n' } } : {});
  await lab.finalize();
  await insertIdleParents(scan, 1_500);
  await lab.plan(scan);
  const [r] = await lab.published(scan, 'r');
  await lab.run(r!, worker);
  return { lab, scan };
}

// Two passes take 2,000: until then u2 has settled, and its parents are still to be looked at.
test('parents that finish all at once, more than two passes take, each get a child, in every step', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(twoPairs, { inputs: { many: lines(2_100), few: lines(100) } });
  await lab.plan(scan);
  expect(await finishAll()).toBe(2_200);
  expect(await lab.plan(scan)).toBe(2_200);
  expect(await parents()).toEqual([
    { step: 'u1', no_work: false, parents: 2_100, with_child: 2_100 },
    { step: 'u2', no_work: false, parents: 100, with_child: 100 },
  ]);
  expect(await lab.settle(scan)).toBe('Running');
});

const allHaveTheirs = [
  { step: 'u', no_work: false, parents: 1, with_child: 1 },
  { step: 'u', no_work: true, parents: 1_500, with_child: 1_500 },
];

test('a step that begins late makes a child of each task that its parent step had finished', async () => {
  const { lab, scan } = await beforeLateStep(lateChild);
  expect(await lab.tasks(scan, 'c')).toEqual([]);
  await lab.plan(scan);
  expect(await parents()).toEqual(allHaveTheirs);
  expect((await lab.tasks(scan, 'c')).filter((task) => task.status === 'Pending')).toHaveLength(1);
  expect(await lab.settle(scan)).toBe('Running');
});

test('a step that begins late expands what its parent step had left', async () => {
  const { lab, scan } = await beforeLateStep(lateExpansion);
  await lab.plan(scan);
  const pending = (await lab.tasks(scan, 'c')).filter((task) => task.status === 'Pending');
  expect(pending.map((task) => task.item)).toMatchObject([{ line: 'a' }, { line: 'b' }]);
  expect(await lab.settle(scan)).toBe('Running');
});

test.each([1, 2])(
  'a pass that crashes at page %i of that loses no child and makes none twice',
  async (page) => {
    const { lab, scan } = await beforeLateStep(lateChild);
    const crashing = lab.with({
      database: faultyDatabase(
        clone.database,
        (name, time) => name === 'step.move_backfill' && time === page,
      ),
    });
    await expect(crashing.plan(scan)).rejects.toThrow('injected fault before step.move_backfill');
    expect(await lab.settle(scan)).toBe('Running');
    await lab.plan(scan);
    expect(await parents()).toEqual(allHaveTheirs);
  },
);
