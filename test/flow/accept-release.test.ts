// What a worker gives back is Pending at once, within bounds, and costs no retry.
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { resultOf } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

test('a released task is Pending at once, without attempt, and no retry is spent', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker);
  expect(await lab.release(attempt, worker, 'spot')).toMatchObject({ disposition: 'accepted' });
  expect(await lab.tasks(scan)).toMatchObject([
    { status: 'Pending', attempt_id: null, tag: null, releases: 1, retries: 0, failure_code: null },
  ]);
  expect(await clone.database.rows(query`select end_reason, release_reason from sonar.attempt`)).toEqual([
    { end_reason: 'released', release_reason: 'spot' },
  ]);
  expect((await lab.place())?.placed).toHaveLength(1);
});

test('a task whose program is not there waits, so that it does not come straight back', async () => {
  const { lab, worker, attempt } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker);
  await lab.release(attempt, worker, 'command_not_found');
  expect((await lab.place())?.placed).toEqual([]);
  const [row] = await clone.database.rows<{ seconds: number }>(
    query`select extract(epoch from not_before - clock_timestamp())::float as seconds from sonar.task`,
  );
  expect(row?.seconds).toBeGreaterThan(20);
  expect(row?.seconds).toBeLessThanOrEqual(30);
});

test('a release that is sent again, or of an attempt that is not current, is superseded and changes nothing', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker);
  await lab.release(attempt, worker);
  await lab.place();
  const before = await lab.tasks(scan);
  expect(await lab.release(attempt, worker)).toMatchObject({ disposition: 'superseded' });
  expect(await lab.tasks(scan)).toEqual(before);
});

test('no release undoes an accepted result', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.run(attempt, worker);
  expect(await lab.release(attempt, worker)).toMatchObject({ disposition: 'superseded' });
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Completed', releases: 0 }]);
  expect(await clone.database.rows(query`select end_reason from sonar.attempt`)).toEqual([
    { end_reason: 'result' },
  ]);
});

test('a result after the release of its attempt is superseded', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects);
  await lab.start(attempt, worker);
  await lab.release(attempt, worker);
  expect(await lab.accept(attempt, resultOf(attempt, worker))).toBe('superseded');
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Pending' }]);
});

test('the last release that is allowed fails the task', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, {
    settings: { SONAR_MAX_RELEASES: 3 },
  });
  let current = attempt;
  for (let time = 1; time <= 3; time += 1) {
    await lab.start(current, worker);
    expect(await lab.release(current, worker)).toMatchObject({ disposition: 'accepted' });
    expect(await lab.tasks(scan)).toMatchObject([
      { releases: time, status: time < 3 ? 'Pending' : 'Failed' },
    ]);
    if (time === 3) break;
    await lab.place();
    [current] = (await lab.published(scan)) as [typeof attempt];
  }
  expect(await lab.tasks(scan)).toMatchObject([
    { failure_code: 'RELEASED_TOO_OFTEN', attempt_id: null, retries: 0 },
  ]);
  expect((await lab.place())?.placed).toEqual([]);
});
