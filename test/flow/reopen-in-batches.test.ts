// A retry of a scan of any size: the intent is committed at once, and worked off in bounded batches.
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { edit, text } from '../fixtures/edited-scan.ts';
import { type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const batch = 5_000;

/** Further ones like the first task of a step. */
const multiply = (step: string, count: number) =>
  clone.database.execute(query`
    insert into sonar.task (task_id, workspace_id, scan_id, step, parent_task_id, sources_id, item_ordinal, item, status,
                            definition_revision, finished_at, failure_code, outcome)
    select gen_random_uuid(), workspace_id, scan_id, step, parent_task_id, sources_id, 1000 + g, to_jsonb('host-' || g),
           status, definition_revision, finished_at, failure_code, outcome
    from (select * from sonar.task where step = ${step} and superseded_at is null limit 1) t, generate_series(1, ${count}::integer) g`);

const counts = async (step: string) =>
  Object.fromEntries(
    (
      await clone.database.rows<{ status: string; tasks: number }>(query`
        select status, count(*) as tasks from sonar.task where step = ${step} and superseded_at is null group by 1`)
    ).map((row) => [row.status, row.tasks]),
  );

/** One task that was cancelled with its scan, and so many more. */
async function cancelled(more: number) {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(eachLine, { inputs: { lines: ['a'] } });
  await lab.plan(scan);
  await cancelScan(lab.database, scan.scan_id, 'enough');
  await lab.plan(scan);
  await multiply('each', more);
  expect(await lab.settle(scan)).toBe('Cancelled');
  return { lab, scan };
}

test('a retry tells all that it means, does a batch of it, and the passes do the rest', async () => {
  const { lab, scan } = await cancelled(2 * batch);
  const { scan: open, retried } = await retryTasks(lab, scan.scan_id, null);
  expect({ retried, status: open.status }).toEqual({ retried: 2 * batch + 1, status: 'Running' });
  expect(await counts('each')).toEqual({ Pending: batch, Cancelled: batch + 1 });
  expect(await lab.settle(open)).toBe('Running');
  expect(await lab.planOnce(open)).toMatchObject({ progressed: true, definition: undefined });
  await lab.plan(open);
  expect(await counts('each')).toEqual({ Pending: 2 * batch + 1 });
});

test('what fails while a retry is worked off was not meant by it', async () => {
  const { lab, scan } = await cancelled(batch);
  const worker = await lab.worker({ slots: 1 });
  await retryTasks(lab, scan.scan_id, null);
  await lab.place();
  const [attempt] = await lab.published(scan);
  await lab.run(attempt!, worker, {}, { outcome: 'failed', exitCode: 1 });
  await lab.plan(scan);
  expect(await counts('each')).toMatchObject({ Failed: 1 });
});

test('a cancel ends a retry that is being worked off: what was not reached stays as it was', async () => {
  const { lab, scan } = await cancelled(2 * batch);
  await retryTasks(lab, scan.scan_id, null);
  await cancelScan(lab.database, scan.scan_id, 'never mind');
  await lab.plan(scan);
  expect(await counts('each')).toEqual({ Cancelled: 2 * batch + 1 });
  expect(await lab.settle(scan)).toBe('Cancelled');
});

const wide = text(
  `  list: {tags: [t], foreach: {in: inputs.lines}, command: [list]}
  use: {tags: [u], needs: {list: all}, foreach: {in: inputs.lines, unique: true}, command: [use]}
`,
);

/** `use` rests on two of `list`, one of which failed, and has many tasks, values and staged rows. */
async function restingOn(many: number): Promise<{ lab: Laboratory; scan: ScanRow }> {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(wide, { inputs: { lines: 'a\nb' } });
  await lab.plan(scan);
  await lab.place();
  const [one, two] = await lab.published(scan, 'list');
  await lab.run(one!, worker);
  await lab.run(two!, worker, {}, { outcome: 'failed', exitCode: 1 });
  await lab.plan(scan);
  await multiply('use', many);
  await clone.database.execute(query`
    insert into sonar.unique_item (scan_id, step, value_sha256, workspace_id, expansion_id)
    select scan_id, step, sha256(g::text::bytea), workspace_id, expansion_id
    from sonar.expansion, generate_series(1, ${many}::integer) g where step = 'use'`);
  await clone.database.execute(query`
    insert into sonar.expansion_row (expansion_id, ordinal, workspace_id, item)
    select expansion_id, g, workspace_id, '1' from sonar.expansion, generate_series(1, ${many}::integer) g where step = 'use'`);
  await retryTasks(lab, scan.scan_id, null);
  return { lab, scan };
}

const left = async () => {
  const [row] = await clone.database.rows(query`
    select (select count(*) from sonar.task where step = 'use' and superseded_at is null) as tasks,
           (select count(*) from sonar.unique_item) as known, (select count(*) from sonar.expansion_row) as staged,
           (select count(*) from sonar.expansion where step = 'use') as streams`);
  return row;
};

test('of a step that begins anew nothing is placed or made before all that it had is void', async () => {
  const { lab, scan } = await restingOn(batch + 1);
  await lab.worker({ name: 'w2', tags: ['u'], slots: 5 });
  expect(await counts('use')).toMatchObject({ Pending: 3, Cancelled: batch });
  const placed = (await lab.place())?.placed;
  expect(placed).toMatchObject([{ step: 'list', tasks: 1 }]);
  while ((await lab.planOnce(scan)).definition === undefined) await lab.place();
  expect(await left()).toEqual({ tasks: 0, known: 0, staged: 0, streams: 0 });
  expect(await lab.settle(scan)).toBe('Running');
  const worker = await lab.worker();
  await lab.run((await lab.published(scan, 'list'))[0]!, worker);
  await lab.plan(scan);
  expect(await counts('use')).toEqual({ Pending: 2 });
});

test('a scan that is cancelled meanwhile ends when all that began anew is void', async () => {
  const { lab, scan } = await restingOn(batch + 1);
  await lab.place();
  await lab.run((await lab.published(scan, 'list'))[0]!, await lab.worker());
  await cancelScan(lab.database, scan.scan_id, 'enough');
  await lab.planOnce(scan);
  // No task is open any more.
  expect(Object.keys(await counts('use'))).toEqual(['Cancelled']);
  expect(await lab.settle(scan)).toBe('Cancelling');
  await lab.plan(scan);
  expect(await left()).toEqual({ tasks: 0, known: 0, staged: 0, streams: 0 });
  expect(await lab.settle(scan)).toBe('Cancelled');
});

test('what a removed step has staged goes in batches, and its streams are followed no more', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(wide, { inputs: { lines: 'a\nb' } });
  await lab.planOnce(scan);
  await clone.database.execute(query`
    insert into sonar.expansion_row (expansion_id, ordinal, workspace_id, item)
    select expansion_id, g, workspace_id, '1' from sonar.expansion, generate_series(1, ${batch + 1}::integer) g`);
  await edit(lab, text('  other: {tags: [t], command: [x]}\n'));
  expect(await lab.planOnce(scan)).toMatchObject({ progressed: true });
  expect(await left()).toMatchObject({ staged: 1 });
  await lab.plan(scan);
  expect(await left()).toMatchObject({ staged: 0 });
  expect(await counts('list')).toEqual({});
});
