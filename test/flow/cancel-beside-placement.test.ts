// A cancel that meets a placement pass sees what the pass has made: no attempt is left that nobody ends.
import type { Database } from '#sonar/db/pool.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import type { PassResult } from '#sonar/flow/place-tasks.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { whileLocked } from '../fixtures/lock-waits.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

test('a cancel that waits for a pass ends the attempts which that pass has made', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(eachLine, { inputs: { lines: ['a', 'b', 'c'] } });
  await lab.plan(scan);
  const committed = Promise.withResolvers<void>();
  let placing: Promise<PassResult | undefined> | undefined;
  await whileLocked(
    { holder: clone.open(1), observer: clone.open(1) },
    async (tx) => {
      const placed = Promise.withResolvers<void>();
      const uncommitted: Database = {
        ...clone.database,
        async transaction(work) {
          const result = await work(tx);
          placed.resolve();
          await committed.promise;
          return result;
        },
      };
      placing = lab.with({ database: uncommitted }).place();
      await Promise.race([placed.promise, placing]);
    },
    1,
    async () => {
      await cancelScan(clone.database, scan.scan_id, 'enough');
      return lab.planOnce(scan);
    },
  );
  committed.resolve();
  expect((await placing)?.placed).toMatchObject([{ tasks: 3 }]);
  expect(
    await clone.database.rows(
      query`select end_reason, ended_at is not null as ended, count(*) as attempts from sonar.attempt group by 1, 2`,
    ),
  ).toEqual([{ end_reason: 'cancelled', ended: true, attempts: 3 }]);
  expect((await lab.tasks(scan)).map((task) => task.status)).toEqual(['Cancelled', 'Cancelled', 'Cancelled']);
  expect(await lab.settle(scan)).toBe('Cancelled');
});
