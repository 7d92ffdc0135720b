// Steps begin, settle and are blocked as what they need does; nothing is over while something of it may still come.

import { planScan } from '#sonar/flow/plan-scan.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine, fanOutAndIn } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const lab = () => openLaboratory(clone, objects);

test('a step whose expansion has not been worked on yet is not settled', async () => {
  const { database, scan, planOnce } = lab();
  const started = await scan(eachLine, { inputs: { lines: ['a'] } });
  for (let time = 0; time < 3; time += 1) await planOnce(started);
  expect(await database.rows(query`select state from sonar.scan_step`)).toEqual([{ state: 'open' }]);
});

test('a step whose upstream has no completed task is blocked, and so is what needs it', async () => {
  const { database, scan, plan, tasks, worker, place, published, run, settle } = lab();
  const live = await worker();
  const started = await scan(fanOutAndIn, { inputs: { lines: ['a'] } });
  await plan(started);
  await place();
  await run((await published(started))[0]!, live, {}, { outcome: 'failed', exitCode: 1 });
  await plan(started);
  const steps = await database.rows(
    query`select step, state, note from sonar.scan_step where scan_id = ${started.scan_id} order by ordinal`,
  );
  expect(steps).toEqual([
    { step: 'each', state: 'settled', note: null },
    { step: 'child', state: 'settled', note: null },
    { step: 'report', state: 'blocked', note: 'step "child" has no completed task' },
  ]);
  expect(await tasks(started, 'report')).toEqual([]);
  expect(await settle(started)).toBe('CompletedWithErrors');
});

test('steps settle in the order of their needs, each only when nothing of it can come any more', async () => {
  const { database, scan, plan, worker, place, published, run } = lab();
  const live = await worker();
  const started = await scan(fanOutAndIn, { inputs: { lines: ['a'] } });
  const settled = async () => {
    await plan(started);
    const rows = await database.rows<{ step: string }>(
      query`select step from sonar.scan_step where scan_id = ${started.scan_id} and state = 'settled' order by ordinal`,
    );
    return rows.map((row) => row.step);
  };
  const seen = [await settled()];
  for (const step of ['each', 'child', 'report']) {
    await place();
    await run((await published(started, step))[0]!, live);
    seen.push(await settled());
  }
  expect(seen).toEqual([[], ['each'], ['each', 'child'], ['each', 'child', 'report']]);
});

test('children count toward the cap on tasks, which fails the scan', async () => {
  const { database, scan, plan, tasks, worker, place, published, run, settle } = openLaboratory(
    clone,
    objects,
    {
      SONAR_SCAN_TASK_CAP: 5,
    },
  );
  const live = await worker();
  const started = await scan(fanOutAndIn, { inputs: { lines: ['a', 'b', 'c'] } });
  await plan(started);
  await place();
  for (const attempt of await published(started)) await run(attempt, live);
  await plan(started);
  expect(await settle(started)).toBe('Failed');
  expect(await database.rows(query`select status, reason from sonar.scan`)).toEqual([
    { status: 'Failed', reason: 'task_cap_exceeded: the scan has grown past 5 tasks' },
  ]);
  expect((await tasks(started, 'child')).map((task) => task.status)).toEqual([
    'Cancelled',
    'Cancelled',
    'Cancelled',
  ]);
});

test('a scan that is not there is a fault', async () => {
  await expect(planScan(lab(), newId())).rejects.toMatchObject({
    code: 'not_found',
  });
});
