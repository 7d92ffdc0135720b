// A worker without the program of a step is passed over for that step; where every worker is, its tasks fail and say why.
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { parkTags } from '#sonar/stores/parked-tags.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const lines = (count: number) => Array.from({ length: count }, (_, index) => `line-${index}`);
const notFound = (worker: string) =>
  ({
    outcome: 'not_started',
    exitCode: null,
    failure: { code: 'command_not_found', message: `probe was not found on worker ${worker}` },
  }) as const;
const makeDue = () => clone.database.execute(query`update sonar.task set not_before = null`);

/** A scan of so many lines, placed, and its first task tried by a worker that has not the program. */
async function oneLacking(
  count: number,
  others: { name: string; tags: string[]; slots: number }[] = [],
  tags = 'tags: [t, u]',
) {
  const lab = openLaboratory(clone, objects);
  const lacking = await lab.worker({ name: 'bare', tags: ['t', 'u'], slots: 4 });
  const having = [];
  for (const other of others) having.push(await lab.worker(other));
  const source = eachLine.replace('tags: [t]', `${tags}\n    retry: 1`);
  const scan = await lab.scan(source, { inputs: { lines: lines(count) } });
  await lab.plan(scan);
  await lab.place();
  const attempts = await lab.published(scan);
  await lab.run(attempts[0]!, lacking, {}, notFound('bare'));
  return { lab, scan, lacking, having, attempts };
}

test('the task is Pending again after a while, and none of its budgets is used', async () => {
  const { lab, scan } = await oneLacking(1, [{ name: 'full', tags: ['t'], slots: 1 }]);
  expect(await lab.tasks(scan)).toMatchObject([
    { status: 'Pending', retries: 0, releases: 0, attempt_id: null, failure_code: null },
  ]);
  const [row] = await clone.database.rows<{ seconds: number }>(
    query`select extract(epoch from not_before - clock_timestamp())::float as seconds from sonar.task`,
  );
  expect(row?.seconds).toBeGreaterThan(20);
  expect(row?.seconds).toBeLessThanOrEqual(30);
});

test('a later start on that incarnation is skipped, and the task goes back; on another one it runs', async () => {
  const { lab, scan, lacking, having, attempts } = await oneLacking(2, [
    { name: 'full', tags: ['t', 'u'], slots: 4 },
  ]);
  expect(await lab.start(attempts[1]!, lacking)).toMatchObject({
    disposition: 'skip',
    reason: 'this worker has not the program of the step',
  });
  expect(await lab.tasks(scan)).toMatchObject([
    { status: 'Pending', retries: 0, releases: 0 },
    { status: 'Pending', retries: 0, releases: 0, attempt_id: null },
  ]);
  await makeDue();
  await lab.place();
  for (const attempt of await lab.published(scan))
    expect(await lab.run(attempt, having[0]!)).toBe('accepted');
  expect((await lab.tasks(scan)).map((task) => task.status)).toEqual(['Completed', 'Completed']);
});

test("placement counts the slots of those that have it, and only that step's", async () => {
  const { lab, scan } = await oneLacking(40, [{ name: 'full', tags: ['u'], slots: 3 }]);
  await clone.database.execute(query`
    update sonar.attempt set ended_at = clock_timestamp(), end_reason = 'recovered' where ended_at is null`);
  await clone.database.execute(
    query`update sonar.task set status = 'Pending', attempt_id = null, not_before = null`,
  );
  expect((await lab.place())?.placed).toEqual([{ scanId: scan.scan_id, step: 'each', tag: 'u', tasks: 6 }]);
  const other = await lab.scan(eachLine.replace('each-line', 'other'), { inputs: { lines: lines(40) } });
  await lab.plan(other);
  expect((await lab.place())?.placed).toMatchObject([{ scanId: other.scan_id, tag: 't', tasks: 8 }]);
});

test('where every worker of its tags is passed over the tasks fail, with the reason; where none serves, they wait', async () => {
  const { lab, scan, lacking } = await oneLacking(3);
  await clone.database.execute(query`
    update sonar.attempt set ended_at = clock_timestamp(), end_reason = 'recovered' where ended_at is null`);
  await clone.database.execute(
    query`update sonar.task set status = 'Pending', attempt_id = null, not_before = null`,
  );
  await lacking.pulse({ draining: true });
  expect(await lab.place()).toMatchObject({ placed: [], refused: 0 });
  expect(new Set((await lab.tasks(scan)).map((task) => task.status))).toEqual(new Set(['Pending']));
  await lacking.pulse({ draining: false });
  expect(await lab.place()).toMatchObject({ placed: [], refused: 3 });
  expect(await lab.tasks(scan)).toMatchObject(
    Array.from({ length: 3 }, () => ({
      status: 'Failed',
      failure_code: 'command_not_found',
      failure_message: 'probe was not found on worker bare',
    })),
  );
});

test('a worker that has it by a tag that is parked is waited for: nothing fails', async () => {
  const { lab, scan } = await oneLacking(6, [{ name: 'full', tags: ['v'], slots: 4 }], 'tags: [t, v]');
  await parkTags(lab.database, new Map([['v', 'the broker refuses it']]), 60_000);
  await makeDue();
  await lab.place();
  expect((await lab.tasks(scan)).filter((task) => task.status === 'Failed')).toEqual([]);
  expect((await lab.tasks(scan)).filter((task) => task.status === 'Pending').length).toBeGreaterThan(0);
  await clone.database.execute(query`delete from sonar.parked_tag`);
  const placed = (await lab.place())?.placed;
  expect(placed).toMatchObject([{ tag: 'v' }]);
});

test('a worker that starts again is asked again, and so are all after a retry that somebody asks for', async () => {
  const { lab, scan } = await oneLacking(1);
  await makeDue();
  await lab.worker({ name: 'bare', tags: ['t', 'u'], slots: 4 });
  expect((await lab.place())?.placed).toMatchObject([{ tasks: 1 }]);
  const again = await lab.worker({ name: 'bare', tags: ['t', 'u'], slots: 4 });
  const [attempt] = await lab.published(scan);
  await lab.run(attempt!, again, {}, notFound('bare again'));
  await makeDue();
  expect(await lab.place()).toMatchObject({ refused: 1 });
  await retryTasks(lab, scan.scan_id, null);
  expect((await lab.place())?.placed).toMatchObject([{ tasks: 1 }]);
});
