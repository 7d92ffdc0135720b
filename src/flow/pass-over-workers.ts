// Workers that have not the program of a step are no room for it; where all of them are passed over, its tasks fail.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { Db } from '#sonar/db/pool.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { missingPrograms } from '#sonar/stores/missing-programs.ts';
import { type PendingStepRow, refuseTasks, takePendingTasks } from '#sonar/stores/placement.ts';

interface PassedOver {
  incarnations: ReadonlySet<string>;
  /** What the last of them has said. */
  reason: string;
}

/** A step that workers serve, and none of them with its program. */
export interface Nowhere {
  row: PendingStepRow;
  reason: string;
}

/** Of the revision that would be dispatched: another one may name another program. */
export async function readPassedOver(
  db: Db,
  rows: readonly PendingStepRow[],
): Promise<(row: PendingStepRow) => PassedOver> {
  const programs = await missingPrograms(db, [...new Set(rows.map((row) => row.scan_id))]);
  return (row) => {
    const own = programs.filter(
      (program) =>
        program.scan_id === row.scan_id &&
        program.step === row.step &&
        program.definition_revision === row.definition_revision,
    );
    return {
      incarnations: new Set(own.map((program) => program.incarnation_id)),
      reason: own.at(-1)?.message ?? '',
    };
  };
}

/** Those that are due, no more than `limit` a pass. @returns how many failed. */
export async function failNowhere(
  tx: Db,
  log: Logger,
  { row, reason }: Nowhere,
  limit: number,
): Promise<number> {
  const tasks = await takePendingTasks(tx, row.scan_id, row.step, limit);
  if (tasks.length === 0) return 0;
  log.warn({ operation: 'program_missing', scanId: row.scan_id, step: row.step, reason });
  return refuseTasks(
    tx,
    failureCodes.commandNotFound,
    tasks.map((task) => ({ taskId: task.task_id, reason })),
  );
}
