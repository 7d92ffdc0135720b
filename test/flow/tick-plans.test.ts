// What every tick and every idle process asks costs what is open, not what there ever was: PostgreSQL's plans say so.
import type { Db } from '#sonar/db/pool.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { genericPlan, type PlanNode } from '../fixtures/planned-statement.ts';
import { query } from '../fixtures/query.ts';
import { sourceStatements } from '../fixtures/statement-texts.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const texts = new Map(sourceStatements().map(({ name, text }) => [name, text]));

/** How the statement reads sonar.task when its values are not known, as a prepared one is planned in the end. */
const readsOfTasks = async (tx: Db, text: string): Promise<PlanNode[]> =>
  (await genericPlan(tx, text)).filter((node) => node['Relation Name'] === 'task');

// Of few scans with much in every state the planner expects to meet a fitting row soon, and would read on to the end
// of the table where there is none.
test('the statements of a tick and of placement find their tasks by index', async () => {
  const lab = openLaboratory(clone, objects);
  for (const name of ['first', 'second']) {
    const scan = await lab.scan(eachLine.replace('each-line', name));
    await clone.database.execute(query`
      insert into sonar.task (task_id, workspace_id, scan_id, step, item_ordinal, item, status, definition_revision, tag, published_at,
                              started_at, finished_at, accepted_attempt_id, accepted_digest, accepted_sequence, plan_due)
      select gen_random_uuid(), 'default', ${scan.scan_id}, 'each', n, '"x"', 'Completed', 1, 't', now(), now(), now(), gen_random_uuid(), 'd', n, n % 2 = 0
      from generate_series(1, 2000) as n`);
    await clone.database.execute(query`
      insert into sonar.task (task_id, workspace_id, scan_id, step, item_ordinal, item, status, definition_revision)
      select gen_random_uuid(), 'default', ${scan.scan_id}, 'each', n, '"x"', 'Pending', 1 from generate_series(2001, 4000) as n`);
  }
  await clone.database.script('analyze');
  const reads: [string, string, string | undefined][] = [];
  await clone.database.transaction(async (tx) => {
    for (const name of hot)
      for (const node of await readsOfTasks(tx, texts.get(name) ?? ''))
        reads.push([name, node['Node Type'], node['Index Cond'] ?? node['Recheck Cond']]);
  });
  expect(new Set(reads.map(([name]) => name))).toEqual(new Set(hot));
  expect(
    reads.filter(([, how, by]) => how === 'Seq Scan' || !/scan_id = |^\(task_id = /.test(by ?? '')),
  ).toEqual([]);
});

const hot = [
  'scan_event.list',
  'task.openness',
  'settlement.of_scan',
  'placement.wanted',
  'task.plan_due',
  'task.finished',
  'placement.pending_steps',
  'placement.take',
];
