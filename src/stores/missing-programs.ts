// Which workers have not the program of which step.
import type { AttemptId, IncarnationId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

/** Of the incarnation that an attempt was started on. */
export async function noteMissingProgram(db: Db, attemptId: AttemptId, message: string): Promise<void> {
  await db.execute(sql('missing_program.note')`
    insert into sonar.missing_program as m (scan_id, step, incarnation_id, definition_revision, workspace_id, message)
    select scan_id, step, incarnation_id, definition_revision, workspace_id, ${message}
    from sonar.attempt where attempt_id = ${attemptId} and incarnation_id is not null
    on conflict (scan_id, step, incarnation_id) do update
    set definition_revision = greatest(m.definition_revision, excluded.definition_revision),
        message = excluded.message, found_at = clock_timestamp()`);
}

export interface MissingProgramRow {
  scan_id: string;
  step: string;
  incarnation_id: IncarnationId;
  definition_revision: number;
  message: string;
}

/** Of all steps of the given scans; the newest last. */
export function missingPrograms(db: Db, scanIds: readonly string[]): Promise<MissingProgramRow[]> {
  return db.rows(sql('missing_program.of_scans')`
    select scan_id, step, incarnation_id, definition_revision, message from sonar.missing_program
    where scan_id = any(${scanIds}::uuid[]) order by found_at`);
}

/** Every worker is asked again. */
export async function forgetMissingPrograms(db: Db, scanId: string, step: string): Promise<void> {
  await db.execute(sql('missing_program.forget')`
    delete from sonar.missing_program where scan_id = ${scanId} and step = ${step}`);
}

/**
 * An attempt that has come to a worker without its program goes back: Pending after `delayMs`, and no budget is used.
 * False where the worker is not known to lack it, or the attempt is not Published any more.
 */
export async function passOverAttempt(
  db: Db,
  attemptId: string,
  incarnationId: string,
  delayMs: number,
): Promise<boolean> {
  const [row] = await db.rows<{ passed: boolean }>(sql('missing_program.pass_over')`
    with lacking as (
      select a.attempt_id from sonar.attempt a
      join sonar.missing_program m on m.scan_id = a.scan_id and m.step = a.step
        and m.incarnation_id = ${incarnationId} and m.definition_revision = a.definition_revision
      where a.attempt_id = ${attemptId}),
    back as (
      update sonar.task t
      set status = 'Pending', attempt_id = null, tag = null,
          not_before = clock_timestamp() + ${delayMs} * interval '1 millisecond'
      from lacking l where t.attempt_id = l.attempt_id and t.status = 'Published' returning l.attempt_id),
    ended as (
      update sonar.attempt a set ended_at = clock_timestamp(), end_reason = 'released', release_reason = 'command_not_found'
      from back b where a.attempt_id = b.attempt_id and a.ended_at is null)
    select exists (select from back) as passed`);
  return row?.passed ?? false;
}
