// Counts are kept by deltas, without counting; whatever happens, they are what counting would give.
import fc from 'fast-check';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { foldTaskCounts, taskCounts } from '#sonar/stores/task-counts.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { fanOutAndIn } from '../fixtures/definition-texts.ts';
import { attemptOf, type Laboratory, openLaboratory, resultOf } from '../fixtures/laboratory.ts';
import type { LiveWorker } from '../fixtures/live-worker.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const source = fanOutAndIn.replace(
  '    command: [probe',
  '    retry: {max: 1, backoff: 1s}\n    command: [probe',
);

async function expectTrueCounts(scan: ScanRow): Promise<void> {
  const kept = await taskCounts(clone.database, scan.scan_id);
  const counted = await clone.database.rows(query`
    select step, status, no_work, count(*)::integer as tasks from sonar.task
    where scan_id = ${scan.scan_id} and superseded_at is null group by 1, 2, 3`);
  const sorted = (rows: unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted();
  expect(sorted(kept)).toEqual(sorted(counted));
}

interface Stage {
  lab: Laboratory;
  scan: ScanRow;
  worker: LiveWorker;
}

/** The nth of the scan's attempts in that state, if there is any. */
async function attemptIn({ lab, scan }: Stage, status: 'Published' | 'Running', nth: number) {
  const rows = await clone.database.rows<{ attempt_id: string }>(query`
    select attempt_id from sonar.task where scan_id = ${scan.scan_id} and status = ${status} order by task_id`);
  const row = rows[nth % Math.max(rows.length, 1)];

  return row ? attemptOf(lab.database, row.attempt_id) : undefined;
}

const operations: Record<string, (stage: Stage, nth: number) => Promise<unknown>> = {
  plan: ({ lab, scan }) => lab.plan(scan),
  planOnce: ({ lab, scan }) => lab.planOnce(scan),
  place: async ({ lab }) => {
    await clone.database.execute(query`update sonar.task set not_before = null where not_before is not null`);
    return lab.place();
  },
  async start(stage, nth) {
    const attempt = await attemptIn(stage, 'Published', nth);
    if (attempt) await stage.lab.start(attempt, stage.worker);
  },
  async complete(stage, nth) {
    const attempt = await attemptIn(stage, 'Running', nth);
    if (attempt) await stage.lab.accept(attempt, resultOf(attempt, stage.worker));
  },
  async fail(stage, nth) {
    const attempt = await attemptIn(stage, 'Running', nth);
    if (attempt)
      await stage.lab.accept(attempt, resultOf(attempt, stage.worker, { outcome: 'failed', exitCode: 1 }));
  },
  async release(stage, nth) {
    const attempt = await attemptIn(stage, 'Running', nth);
    if (attempt) await stage.lab.release(attempt, stage.worker);
  },
  supersede: ({ scan }, nth) =>
    clone.database.execute(query`
      update sonar.task set superseded_at = now() where task_id in (
        select task_id from sonar.task where scan_id = ${scan.scan_id} and status in ('Completed', 'Failed') and superseded_at is null
        order by task_id offset ${nth % 4} limit 1)`),
  fold: ({ scan }) => foldTaskCounts(clone.database, scan.scan_id),
};
const names = Object.keys(operations);

test('after any mix of operations the counts are those of the tasks', async () => {
  const steps = fc.array(fc.tuple(fc.constantFrom(...names, 'place', 'start', 'complete'), fc.nat(20)), {
    minLength: 20,
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(steps, fc.boolean(), async (mix, cancelled) => {
      await clone.empty();
      const lab = openLaboratory(clone, objects);
      const worker = await lab.worker();
      const scan = await lab.scan(source, {
        inputs: { lines: Array.from({ length: 12 }, (_, index) => `l${index}`) },
      });
      const stage = { lab, scan, worker };
      await lab.plan(scan);
      for (const [name, nth] of mix) {
        await operations[name]?.(stage, nth);
        await expectTrueCounts(scan);
      }
      if (cancelled) await cancelScan(clone.database, scan.scan_id, 'enough');
      await lab.plan(scan);
      await expectTrueCounts(scan);
    }),
    { seed: 4_711, numRuns: 6, endOnFailure: true },
  );
});

test('folds at once, while tasks go on changing, lose nothing', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(source, {
    inputs: { lines: Array.from({ length: 40 }, (_, index) => `l${index}`) },
  });
  await lab.plan(scan);
  await lab.place();
  const attempts = await lab.published(scan);
  const folders = Array.from({ length: 3 }, () => clone.open(1));
  await Promise.all([
    ...attempts.map((attempt) => lab.run(attempt, worker)),
    ...folders.map(async (database) => {
      for (let time = 0; time < 5; time += 1) await foldTaskCounts(database, scan.scan_id);
    }),
  ]);
  await expectTrueCounts(scan);
  await foldTaskCounts(clone.database, scan.scan_id);
  await expectTrueCounts(scan);
  expect(
    await clone.database.rows(query`select count(*)::integer as left from sonar.task_count_delta`),
  ).toEqual([{ left: 0 }]);
});
