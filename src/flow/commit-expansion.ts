// One step of an expansion: the tasks, the place that was reached and everything that belongs to them, or nothing.
import type { ForeachSpec, JsonValue, Step } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { TaskId } from '#sonar/contracts/ids.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import type { LiveDefinition } from '#sonar/definition/live-definition.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import type { ParsedScope } from '#sonar/domain/scope.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import {
  advanceExpansion,
  type ExpansionRow,
  insertExpandedTasks,
  insertTaskFiles,
  lockExpansion,
  type NewTaskFile,
} from '#sonar/stores/expansions.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import { failScanRow, lockScan, type ScanRow } from '#sonar/stores/scans.ts';
import { addRefused, stepsPinnedAs } from '#sonar/stores/steps.ts';
import { countTasks } from '#sonar/stores/task-counts.ts';
import { insertTask } from '#sonar/stores/tasks.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';

export interface ExpandParts {
  database: Database;
  objects: ObjectStore;
  revisions: Revisions;
  settings: Pick<Settings, 'SONAR_SCAN_TASK_CAP' | 'SONAR_OUTPUT_CAP_BYTES'>;
  log: Logger;
}

/** One expansion and everything that it reads. */
export interface Expanding {
  scan: ScanRow;
  definition: LiveDefinition;
  step: Step;
  foreach: ForeachSpec;
  expansion: ExpansionRow;
  sourcesId: string | null;
  inputs: RenderContext['inputs'];
  scope: ParsedScope;
}

export interface Progress {
  made: number;
  stopped: boolean;
}

export interface ExpandedTask {
  taskId: TaskId;
  ordinal: number;
  item: JsonValue;
  files: Omit<NewTaskFile, 'taskId'>[];
}

interface Place {
  nextOrdinal: number;
  nextGroup: number;
  atByte: number;
  atOrdinal: number;
}

export const here = (expansion: ExpansionRow): Place => ({
  nextOrdinal: expansion.next_ordinal,
  nextGroup: expansion.next_group,
  atByte: expansion.at_byte,
  atOrdinal: expansion.at_ordinal,
});

/**
 * One step of an expansion, all of it or nothing. The row that was passed in is moved on with it.
 * @returns how many tasks were made; null where the scan does not run, the step has begun anew or another pass has
 * moved the expansion.
 */
export async function commitExpansion(
  parts: Pick<ExpandParts, 'database' | 'settings'>,
  { scan, definition, step, expansion, sourcesId }: Expanding,
  to: Place & {
    tasks: ExpandedTask[] | ((tx: Db) => Promise<ExpandedTask[]>);
    refused?: number;
    reason?: string | undefined;
    staged?: boolean;
    done: boolean;
  },
): Promise<number | null> {
  const owner = { scanId: scan.scan_id, workspaceId: scan.workspace_id };
  const staged = to.staged ?? expansion.staged;
  const committed = await parts.database.transaction(async (tx) => {
    const locked = await lockScan(tx, scan.scan_id);
    if (locked?.status !== 'Running' || locked.generation !== scan.generation) return null;
    const pins = definition.pins.get(step.name);
    if (!pins || !(await stepsPinnedAs(tx, scan.scan_id, new Map([[step.name, pins]]))).has(step.name))
      return null;
    if (!(await lockExpansion(tx, expansion.expansion_id, here(expansion)))) return null;
    const tasks = typeof to.tasks === 'function' ? await to.tasks(tx) : to.tasks;
    const cap = parts.settings.SONAR_SCAN_TASK_CAP;
    if ((await countTasks(tx, scan.scan_id)) + tasks.length > cap) {
      await failScanRow(
        tx,
        scan.scan_id,
        `${failureCodes.taskCap}: step ${step.name} would take the scan past ${cap} tasks`,
      );
      return null;
    }
    const { nextOrdinal, nextGroup, atByte, atOrdinal, done } = to;
    await advanceExpansion(tx, expansion.expansion_id, {
      nextOrdinal,
      nextGroup,
      atByte,
      atOrdinal,
      made: tasks.length,
      staged,
      done,
    });
    const common = {
      step: step.name,
      parentTaskId: expansion.parent_task_id,
      sourcesId,
      definitionRevision: scan.definition_revision,
    };
    if (tasks.length > 0) await insertExpandedTasks(tx, { ...owner, ...common }, tasks.map(rowOf));
    const files = tasks.flatMap((task) => task.files.map((file) => ({ ...file, taskId: task.taskId })));
    if (files.length > 0) await insertTaskFiles(tx, scan.workspace_id, files);
    if (to.refused !== undefined && to.refused > 0)
      await addRefused(tx, scan.scan_id, step.name, to.refused, `refused: ${to.reason ?? ''}`);
    if (done && expansion.made + tasks.length === 0)
      await insertTask(tx, owner, { ...common, taskId: newId(), noWork: true, inputsDue: false });
    return tasks.length;
  });
  if (committed === null) return null;
  Object.assign(expansion, {
    next_ordinal: to.nextOrdinal,
    next_group: to.nextGroup,
    at_byte: to.atByte,
    at_ordinal: to.atOrdinal,
    staged,
    made: expansion.made + committed,
  });
  return committed;
}

const rowOf = ({ taskId, ordinal, item }: ExpandedTask) => ({ taskId, ordinal, item });
