// What a later scan saw otherwise than an earlier one, record by record in the order of their keys, without holding more
// than a page of either.
import type { TaskStatus } from '#sonar/contracts/states.ts';
import type { Db } from '#sonar/db/pool.ts';
import type { RecordState } from '#sonar/domain/inventory-fold.ts';
import {
  type Coverage,
  type Difference,
  differenceOf,
  type Sighting,
} from '#sonar/domain/scan-difference.ts';
import { incompleteSteps, type StepFacts } from '#sonar/domain/step-coverage.ts';
import { findRevision } from '#sonar/stores/definitions.ts';
import {
  inputsNotGiven,
  pageOfSource,
  type SeenRow,
  stepsWithBadRecords,
} from '#sonar/stores/inventory-lists.ts';
import { type ScanRow, scanScope } from '#sonar/stores/scans.ts';
import { stepsOfScan } from '#sonar/stores/steps.ts';
import { taskCounts } from '#sonar/stores/task-counts.ts';
import { type Position, positionOf } from './list-inventory.ts';

export type RecordDifference = Position & { difference: Difference };
export interface Unjudged {
  step: string | null;
  reason: string;
}

/** What keeps absences from being judged; computed of the scans as they are now. */
export async function coverageOf(
  db: Db,
  from: ScanRow,
  to: ScanRow,
): Promise<{ coverage: Coverage; unjudged: Unjudged[] }> {
  const [earlier, later, whole] = await Promise.all([
    incompleteStepsOf(db, from),
    incompleteStepsOf(db, to),
    wholeReason(db, from, to),
  ]);
  const steps = new Map<string, string>();
  for (const name of new Set([...earlier.known, ...later.known])) {
    const before = earlier.known.has(name) ? earlier.incomplete.get(name) : 'is no step of it';
    const after = later.known.has(name) ? later.incomplete.get(name) : 'is no step of it';
    if (after !== undefined) steps.set(name, `in the later scan \`${name}\` ${after}`);
    else if (before !== undefined) steps.set(name, `in the earlier scan \`${name}\` ${before}`);
  }
  return {
    coverage: { whole, steps },
    unjudged: [
      ...(whole === null ? [] : [{ step: null, reason: whole }]),
      ...[...steps].map(([step, reason]) => ({ step, reason })),
    ],
  };
}

/** The later scan must have been given all that the earlier one was given, and have been allowed to touch it. */
async function wholeReason(db: Db, from: ScanRow, to: ScanRow): Promise<string | null> {
  const [missing] = await inputsNotGiven(db, from.scan_id, to.scan_id);
  if (missing !== undefined) return `the later scan was not given all of the input \`${missing}\``;
  const [before, after] = await Promise.all([scanScope(db, from.scan_id), scanScope(db, to.scan_id)]);
  const allowed = new Set(after.allow);
  const denied = new Set(before.deny);
  const narrower =
    before.allow.some((target) => !allowed.has(target)) || after.deny.some((target) => !denied.has(target));
  return narrower ? 'the scope of the later scan does not have all that the earlier one had' : null;
}

async function incompleteStepsOf(
  db: Db,
  scan: ScanRow,
): Promise<{ known: Set<string>; incomplete: Map<string, string> }> {
  const [rows, counts, bad, revision] = await Promise.all([
    stepsOfScan(db, scan.scan_id),
    taskCounts(db, scan.scan_id),
    stepsWithBadRecords(db, scan.scan_id),
    findRevision(db, scan.workspace_id, scan.definition_name, scan.definition_revision),
  ]);
  const compiled = new Map(revision?.compiled.steps.map((step) => [step.name, step.needs]));
  const facts = new Map<string, StepFacts>(
    rows.map((row) => {
      const tasks = new Map<TaskStatus, number>();
      for (const count of counts)
        if (count.step === row.step) tasks.set(count.status, (tasks.get(count.status) ?? 0) + count.tasks);
      const needs = (row.pins?.needs ?? compiled.get(row.step) ?? []).map((need) => need.step);
      return [
        row.step,
        { state: row.state, needs, tasks, removed: row.removed, badRecords: bad.includes(row.step) },
      ];
    }),
  );
  return { known: new Set(facts.keys()), incomplete: incompleteSteps(facts) };
}

const rowsAtOnce = 1_000;
// As a list does it: a page may be short of what was asked and still have a next.
const examinedPerPage = 10_000;

/** A page of differences after `after`; `wanted` says which. */
export async function compareScans(
  db: Db,
  scans: { from: ScanRow; to: ScanRow; coverage: Coverage },
  filter: { type: string | null; change: Difference['change'] | null },
  after: Position,
  limit: number,
): Promise<{ items: RecordDifference[]; next: Position | null }> {
  const items: RecordDifference[] = [];
  let at = after;
  for (let examined = 0; examined < examinedPerPage; examined += rowsAtOnce) {
    const page = { after: at, examine: rowsAtOnce };
    const [before, later] = await Promise.all([
      pageOfSource<RecordState>(db, scans.from.scan_id, filter, page),
      pageOfSource<RecordState>(db, scans.to.scan_id, filter, page),
    ]);
    const end = endOf([before, later]);
    for (const { position, was, is } of pairs(before, later)) {
      if (end !== null && comparePositions(position, end) > 0) break;
      const difference = differenceOf(was, is, scans.coverage);
      if (difference === null || (filter.change !== null && difference.change !== filter.change)) continue;
      if (items.length === limit) return { items, next: positionOf(items.at(-1) ?? position) };
      items.push({ ...position, difference });
    }
    if (end === null) return { items, next: null };
    at = end;
  }
  return { items, next: at };
}

/** How far both pages reach; null: to the end of both. */
function endOf(pages: readonly SeenRow<RecordState>[][]): Position | null {
  const ends = pages
    .filter((page) => page.length === rowsAtOnce)
    .map((page) => positionOf(page.at(-1) as Position));
  return ends.toSorted(comparePositions)[0] ?? null;
}

function* pairs(
  before: readonly SeenRow<RecordState>[],
  later: readonly SeenRow<RecordState>[],
): Generator<{ position: Position; was: Sighting | undefined; is: Sighting | undefined }> {
  let left = 0;
  let right = 0;
  for (;;) {
    const was = before[left];
    const is = later[right];
    if (was === undefined && is === undefined) return;
    const order = was === undefined ? 1 : is === undefined ? -1 : comparePositions(was, is);
    if (order <= 0) left += 1;
    if (order >= 0) right += 1;
    yield {
      position: positionOf((order <= 0 ? was : is) as Position),
      was: order <= 0 ? was : undefined,
      is: order >= 0 ? is : undefined,
    };
  }
}

/** As PostgreSQL's "C" does: by the bytes of UTF-8, which UTF-16 units do not follow beyond the BMP. */
function comparePositions(a: Position, b: Position): number {
  return (
    Buffer.compare(Buffer.from(a.type), Buffer.from(b.type)) ||
    Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))
  );
}
