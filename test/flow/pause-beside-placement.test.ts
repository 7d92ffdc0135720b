// A pause that was answered holds: no placement pass that was under way places anything after it.
import { pauseScan } from '#sonar/flow/pause-scan.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { untilBlocked } from '../fixtures/lock-waits.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { watchedDatabase } from '../fixtures/watched-database.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

async function planned() {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: ['1', '2', '3'] } });
  await lab.plan(scan);
  const statuses = async () => (await lab.tasks(scan)).map((task) => task.status);
  return { lab, scan, statuses };
}

test('a pass that has found a scan running places nothing of it once a pause was answered', async () => {
  const { lab, scan, statuses } = await planned();
  const paused = watchedDatabase(clone.database, async ({ name }) => {
    if (name === 'placement.take') await pauseScan(clone.open(1), scan.scan_id, 'pause');
  });
  expect((await lab.with({ database: paused }).place())?.placed).toEqual([]);
  expect(await statuses()).toEqual(['Pending', 'Pending', 'Pending']);
});

test('a pause is answered when a pass that has taken tasks has committed', async () => {
  const { lab, scan, statuses } = await planned();
  let atAnswer: Promise<string[]> | undefined;
  const pausing = watchedDatabase(clone.database, async ({ name }) => {
    if (name !== 'placement.dispatch') return;
    atAnswer = pauseScan(clone.open(1), scan.scan_id, 'pause').then(statuses);
    await untilBlocked(clone.open(1), 1);
  });
  await lab.with({ database: pausing }).place();
  expect(await atAnswer).toEqual(['Published', 'Published', 'Published']);
});

test('a pass takes tasks of a scan that is being planned', async () => {
  const { lab, scan, statuses } = await planned();
  await clone.open(1).transaction(async (tx) => {
    await tx.rows(query`select from sonar.scan where scan_id = ${scan.scan_id} for no key update`);
    await lab.place();
  });
  expect(await statuses()).toEqual(['Published', 'Published', 'Published']);
});
