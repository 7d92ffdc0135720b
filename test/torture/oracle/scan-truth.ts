// One scan against what is known of it: its end, its tasks, what each of them observed, and the inventory as the fold
// of exactly that.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { ScanStatus, TaskStatus } from '#sonar/contracts/states.ts';
import { canonicalJson, mergeObservation, type RecordState } from '#sonar/domain/inventory-fold.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { query } from '../../fixtures/query.ts';
import type { PatientDatabase } from '../patient-database.ts';
import type { PlannedScan } from '../scans/catalog.ts';
import type { ExpectedTask } from '../scans/expectation.ts';
import { differences, type Finding } from './finding.ts';

interface TaskRow {
  task_id: string;
  step: string;
  item: JsonValue;
  status: TaskStatus;
  no_work: boolean;
  accepted_attempt_id: string | null;
  failure_code: string | null;
  failure_message: string | null;
  results: number;
}
interface ObservationRow {
  task_id: string;
  attempt_id: string;
  step: string;
  key: string;
  order_key: string;
  observed_at: string;
  fields: Record<string, JsonValue>;
  sets: Record<string, string[]>;
  partial: boolean;
}

/** How many tasks it has, and everything that is not as it should be. */
export async function judgeScan(
  database: PatientDatabase,
  planned: PlannedScan,
  scanId: string,
): Promise<{ tasks: number; findings: Finding[] }> {
  const findings: Finding[] = [];
  const where = `scan ${planned.ref} (${scanId})`;
  const [scan] = await database.rows<{ status: ScanStatus }>(
    query`select status from sonar.scan where scan_id = ${scanId}`,
  );
  const tasks = await tasksOf(database, scanId);
  if (scan === undefined) return { tasks: 0, findings: [{ kind: 'lost', what: `${where} is gone` }] };
  // What an open scan lacks may still come: it is stuck, and no more can be said.
  if (isScanOpen(scan.status))
    return { tasks: tasks.length, findings: [{ kind: 'stuck', what: openScan(where, scan.status, tasks) }] };
  if (!planned.expects.ends.includes(scan.status))
    findings.push({
      kind: 'lost',
      what: `${where} ended ${scan.status}, not ${planned.expects.ends.join(' or ')}`,
    });
  const observations = await observationsOf(database, scanId);
  findings.push(
    ...judgeTasks(where, planned, tasks),
    ...judgeObservations(where, planned, tasks, observations),
    ...(await judgeInventory(database, where, observations)),
  );
  return { tasks: tasks.length, findings };
}

const openTask = (task: TaskRow): boolean => ['Pending', 'Published', 'Running'].includes(task.status);
const tasksShown = 5;

function openScan(where: string, status: ScanStatus, tasks: readonly TaskRow[]): string {
  const open = tasks.filter(openTask);
  const some = open.slice(0, tasksShown).map((task) => `${task.step} ${task.task_id} ${task.status}`);
  return `${where} is still ${status} with ${open.length} open task(s) of ${tasks.length}: ${some.join(', ')}`;
}

const tasksOf = (database: PatientDatabase, scanId: string): Promise<TaskRow[]> =>
  database.rows<TaskRow>(query`
    select task_id, step, item, status, no_work, accepted_attempt_id, failure_code, failure_message,
           (select count(*) from sonar.result r where r.task_id = t.task_id)::integer as results
    from sonar.task t where scan_id = ${scanId} and superseded_at is null`);

const observationsOf = (database: PatientDatabase, scanId: string): Promise<ObservationRow[]> =>
  database.rows<ObservationRow>(query`
    select a.task_id, o.attempt_id, a.step, o.key, o.order_key, o.observed_at, o.fields, o.sets, o.partial
    from sonar.observation o join sonar.attempt a using (attempt_id)
    where o.scan_id = ${scanId}`);

/** A text, or what stands for a row: its host. */
function labelOf(item: JsonValue): string | null {
  if (typeof item === 'string') return item;
  if (item === null || typeof item !== 'object' || Array.isArray(item)) return null;
  const { host } = item;
  return typeof host === 'string' ? host : null;
}
const nameOf = (step: string, item: string | null): string => `${step}/${item ?? '-'}`;

function judgeTasks(where: string, planned: PlannedScan, tasks: readonly TaskRow[]): Finding[] {
  const findings: Finding[] = [];
  const { missing, extra } = differences(
    planned.expects.tasks.map(({ step, item }) => nameOf(step, item)),
    tasks.map(({ step, item }) => nameOf(step, labelOf(item))),
  );
  for (const name of missing) findings.push({ kind: 'lost', what: `${where} has no task ${name}` });
  for (const name of extra)
    findings.push({ kind: 'duplicated', what: `${where} has one task ${name} too many` });
  const expected = expectedByName(planned);
  for (const task of tasks) {
    const name = nameOf(task.step, labelOf(task.item));
    const right = expected.get(name);
    if (right === undefined) continue;
    const of = `${where}: task ${name} (${task.task_id})`;
    if (openTask(task)) findings.push({ kind: 'stuck', what: `${of} is ${task.status}` });
    else if (!right.ends.includes(task.status) || task.no_work !== right.noWork)
      findings.push({
        kind: 'lost',
        what: `${of} is ${task.status}${task.no_work ? ' without work' : ''}, not ${right.ends.join(' or ')} (${task.failure_code ?? ''} ${task.failure_message ?? ''})`,
      });
    if (right.results !== undefined && task.results !== right.results)
      findings.push({
        kind: task.results > right.results ? 'duplicated' : 'lost',
        what: `${of} has ${task.results} accepted results, not ${right.results}`,
      });
  }
  return findings;
}

const expectedByName = (planned: PlannedScan): Map<string, ExpectedTask> =>
  new Map(planned.expects.tasks.map((task) => [nameOf(task.step, task.item), task]));

function judgeObservations(
  where: string,
  planned: PlannedScan,
  tasks: readonly TaskRow[],
  observations: readonly ObservationRow[],
): Finding[] {
  const findings: Finding[] = [];
  const expected = expectedByName(planned);
  const accepted = new Map(tasks.map((task) => [task.task_id, task.accepted_attempt_id]));
  const key = (step: string, said: string, partial: boolean): string =>
    `http://127.0.0.1/${planned.ref}/${step}/${said}${partial ? ' (partial)' : ''}`;
  const right: string[] = Object.entries(planned.expects.together).flatMap(([step, said]) =>
    said.map((one) => key(step, one, false)),
  );
  for (const task of tasks) {
    const of = expected.get(nameOf(task.step, labelOf(task.item)));
    if (of === undefined || task.status === 'Cancelled') continue;
    right.push(...of.says.map((said) => key(task.step, said, of.partial)));
  }
  const { missing, extra } = differences(
    right,
    // What was made anew may have been seen before: those observations stay, and are nobody's but their attempt's.
    observations
      .filter((one) => accepted.has(one.task_id))
      .map((one) => `${one.key}${one.partial ? ' (partial)' : ''}`),
  );
  for (const name of missing) findings.push({ kind: 'lost', what: `${where} lacks the observation ${name}` });
  for (const name of extra)
    findings.push({ kind: 'duplicated', what: `${where} has one observation ${name} too many` });
  for (const one of observations)
    if (accepted.has(one.task_id) && accepted.get(one.task_id) !== one.attempt_id)
      findings.push({
        kind: 'duplicated',
        what: `${where}: ${one.key} was observed by attempt ${one.attempt_id} of task ${one.task_id}, whose accepted attempt is ${accepted.get(one.task_id) ?? 'none'}`,
      });
  const observers = new Map<string, Set<string>>();
  for (const { task_id: task, attempt_id: attempt } of observations)
    observers.set(task, (observers.get(task) ?? new Set()).add(attempt));
  for (const [task, attempts] of observers)
    if (attempts.size > 1)
      findings.push({
        kind: 'duplicated',
        what: `${where}: task ${task} has observations of attempts ${[...attempts].join(' and ')}`,
      });
  return findings;
}

/** Keys carry the scan's name, so nobody else observes them. */
async function judgeInventory(
  database: PatientDatabase,
  where: string,
  observations: readonly ObservationRow[],
): Promise<Finding[]> {
  const folded = new Map<string, RecordState>();
  for (const one of observations)
    folded.set(
      one.key,
      mergeObservation(folded.get(one.key) ?? null, {
        orderKey: one.order_key,
        observedAt: one.observed_at,
        fields: one.fields,
        sets: one.sets,
        partial: one.partial,
      }),
    );
  const rows = await database.rows<{ key: string; state: RecordState }>(query`
    select key, state from sonar.inventory where type = 'endpoint' and key = any(${[...folded.keys()]})`);
  const stored = new Map(rows.map(({ key, state }) => [key, canonicalJson(state)]));
  return [...folded].flatMap(([key, state]): Finding[] =>
    stored.get(key) === canonicalJson(state)
      ? []
      : [{ kind: 'lost', what: `${where}: the inventory's ${key} is not what its observations make of it` }],
  );
}
