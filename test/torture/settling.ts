// The faults are over: scans may take as long as they get on. How fast that is, is the machine's affair; a scan is stuck
// when nothing at all has moved for a while.
import { pause } from '#sonar/platform/wait.ts';
import { query } from '../fixtures/query.ts';
import type { PatientDatabase } from './patient-database.ts';

const lookEveryMs = 2_000;
/** What moves for ever without an end is stuck too. */
const longestFactor = 6;

/** Returns when `over` has resolved, when nothing has moved for `stillMs`, or when the signal aborts. */
export async function settled(
  over: Promise<void>,
  database: PatientDatabase,
  stillMs: number,
  signal: AbortSignal,
): Promise<void> {
  let done = false;
  const ended = over.then(() => {
    done = true;
  });
  const begun = performance.now();
  let movedAt = begun;
  let before = '';
  while (!done && !signal.aborted) {
    const now = await stateOf(database);
    if (now !== before) movedAt = performance.now();
    before = now;
    if (performance.now() - movedAt > stillMs || performance.now() - begun > longestFactor * stillMs) return;
    await Promise.race([ended, pause(lookEveryMs, signal)]);
  }
}

/** Changes with every step that brings something nearer to its end; tries that come to nothing do not count. */
async function stateOf(database: PatientDatabase): Promise<string> {
  const rows = await database.rows<{ status: string; count: number }>(query`
    select 'task ' || status as status, count(*) from sonar.task group by 1
    union all select 'scan ' || status, count(*) from sonar.scan group by 1
    union all select 'finalization ' || status, count(*) from sonar.finalization group by 1
    union all select 'result', count(*) from sonar.result
    order by 1`);
  return JSON.stringify(rows);
}
