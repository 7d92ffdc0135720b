// A step that an edit takes out of a running scan.
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { each, edit, first, now, runningScan, statuses, stepRow, text } from '../fixtures/edited-scan.ts';
import { argvOf } from '../fixtures/granted-inputs.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const running = (source?: string, request?: Parameters<typeof runningScan>[3]) =>
  runningScan(clone, objects, source, request);

test('of a removed step what waits is cancelled, what was started finishes, its dependents go on by the rules', async () => {
  const { lab, worker, scan } = await running(
    text(`${each('command: [one, "${item}"]')}  report: {tags: [t], needs: {each: all}, command: [r]}\n`),
  );
  const [a] = await lab.published(scan);
  await lab.start(a!, worker);
  await edit(lab, text('  report: {tags: [t], command: [r]}\n').replace('command: [r]', 'command: [r, x]'));
  await lab.plan(scan);
  expect((await lab.tasks(scan, 'each')).map((task) => [task.status, task.failure_code])).toEqual([
    ['Running', null],
    ['Cancelled', 'step_removed'],
    ['Cancelled', 'step_removed'],
  ]);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({
    removed: true,
    state: 'open',
    revision_note: 'removed in revision 2',
  });
  await lab.accept(a!, await lab.result(a!, worker));
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({ state: 'settled' });
  // Back again in a later revision: not in this scan, nor by a retry.
  await edit(lab, first);
  await lab.plan(scan);
  expect(await statuses(lab, scan, 'each')).toEqual(['Completed', 'Cancelled', 'Cancelled']);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({
    removed: true,
    revision_note: expect.stringContaining('has it again, for new scans'),
  });
  await expect(
    retryTasks(lab, scan.scan_id, (await lab.tasks(scan, 'each'))[1]!.task_id as never),
  ).rejects.toMatchObject({
    code: 'conflict',
  });
});

test('a removed step blocks what rests on all of it when nothing of it is completed, and settles when it never began', async () => {
  const { lab, scan } = await running(
    text(
      each('command: [one, "${item}"]').replace('tags: [t]', 'tags: [never]') +
        '  waits: {tags: [t], needs: {each: all}, command: [w]}\n  report: {tags: [t], needs: {each: single}, command: [r]}\n',
    ),
  );
  // `waits` uses an input that the scan does not have, so it keeps needing what is gone.
  await edit(
    lab,
    text('  waits: {tags: [t], command: [w, "${inputs.key}"]}\n', ', key: {type: text, required: true}'),
  );
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({ state: 'settled', removed: true });
  expect(await stepRow(lab, scan, 'report')).toMatchObject({ state: 'settled', removed: true });
  expect(await stepRow(lab, scan, 'waits')).toMatchObject({
    state: 'blocked',
    note: 'step "each" has no completed task',
    revision: 1,
  });
  expect(await lab.settle(scan)).toBe('CompletedWithErrors');
});

test('a task of a removed step that comes back to Pending is cancelled, and its stream makes no more', async () => {
  const { lab, worker, scan } = await running(text(each('command: [one, "${item}"], retry: 5')));
  const [a] = await lab.published(scan);
  await lab.start(a!, worker);
  await edit(lab, text('  other: {tags: [never], command: [o]}\n'));
  await lab.plan(scan);
  await lab.release(a!, worker);
  expect(await statuses(lab, scan, 'each')).toEqual(['Pending', 'Cancelled', 'Cancelled']);
  // Until the scan's next pass it is not placed either, though it is due.
  await clone.database.execute(
    query`update sonar.task set not_before = null where scan_id = ${scan.scan_id}`,
  );
  expect((await lab.place())?.placed).toEqual([]);
  await lab.plan(scan);
  expect(await statuses(lab, scan, 'each')).toEqual(['Cancelled', 'Cancelled', 'Cancelled']);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({ state: 'settled' });
});

test('removing a step closes the stream that is being expanded', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(first, { inputs: { lines: 'a\nb' } });
  await lab.planOnce(scan);
  await edit(lab, text('  other: {tags: [never], command: [o]}\n'));
  await lab.plan(scan);
  expect(await statuses(lab, scan, 'each')).toEqual([]);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({ state: 'settled' });
});

test('a step that was removed and is back before a pass was never seen to go; the newest of two edits counts', async () => {
  const { lab, worker, scan } = await running();
  await edit(lab, text('  other: {tags: [never], command: [o]}\n'));
  await edit(lab, text(each('command: [three, "${item}"]')));
  await lab.plan(scan);
  expect(await now(lab, scan)).toMatchObject({ definition_revision: 3 });
  expect(await stepRow(lab, scan, 'other')).toBeUndefined();
  await lab.run((await lab.published(scan))[0]!, worker);
  await lab.place();
  expect(await argvOf(lab, (await lab.published(scan))[0]!)).toEqual(['three', 'b']);
});
