// Looking for lost tasks costs what is in flight, not what there ever was: PostgreSQL's plans say so.
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine } from '../fixtures/definition-texts.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { genericPlan } from '../fixtures/planned-statement.ts';
import { query } from '../fixtures/query.ts';
import { sourceStatements } from '../fixtures/statement-texts.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const texts = new Map(sourceStatements().map(({ name, text }) => [name, text]));

/** Indexes that hold nothing of an attempt that is over, and the keys by which single rows are met. */
const cheap = new Set([
  'attempt_unlisted',
  'attempt_unstarted',
  'attempt_to_cancel',
  'attempt_in_flight',
  'attempt_in_flight_of_scan',
  'attempt_of_incarnation',
  'attempt_pkey',
  'task_pkey',
]);

test('the statements of recovery find attempts and tasks by indexes of what is in flight', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(eachLine);
  await clone.database.execute(query`
    insert into sonar.task (task_id, workspace_id, scan_id, step, item_ordinal, item, status, definition_revision)
    select gen_random_uuid(), 'default', ${scan.scan_id}, 'each', n, '"x"', 'Pending', 1 from generate_series(1, 4000) as n`);
  await clone.database.execute(query`
    insert into sonar.attempt (attempt_id, workspace_id, scan_id, task_id, step, tag, number, key_id, definition_revision, confirmed_at,
                               started_at, incarnation_id, started_pulse_sequence, ended_at, end_reason)
    select gen_random_uuid(), 'default', scan_id, task_id, 'each', 't', 1, 'k', 1, now(),
           now(), ${worker.incarnationId}::uuid, 1, case when item_ordinal > 20 then now() end, case when item_ordinal > 20 then 'result' end
    from sonar.task`);
  await clone.database.script('analyze');
  const reads: string[] = [];
  await clone.database.transaction(async (tx) => {
    for (const name of asked)
      for (const node of await genericPlan(tx, texts.get(name) ?? ''))
        if (
          node['Relation Name'] === 'attempt' ||
          node['Relation Name'] === 'task' ||
          cheap.has(node['Index Name'] ?? '')
        )
          reads.push(`${name}: ${node['Index Name'] ?? node['Node Type']}`);
  });
  expect(new Set(reads.map((read) => read.split(':')[0]))).toEqual(new Set(asked));
  const dear = reads.filter((read) => {
    const by = read.split(': ')[1] ?? '';
    // The bitmap's own index is a node beside it.
    return !cheap.has(by) && by !== 'Bitmap Heap Scan' && by !== 'ModifyTable';
  });
  expect(dear).toEqual([]);
});

const asked = [
  'recovery.wanted',
  'recovery.waiting_tags',
  'recovery.holders',
  'recovery.lock_stale',
  'recovery.suspects',
  'worker.note_omitted',
  'worker.end_omitted',
  'worker.end_abandoned',
];
