// A foreach under way: the rows of its stream become tasks, a batch a transaction. The batch and the place
// it reaches commit together, so an expansion goes on after a crash where it was, and never makes an item twice.
import type { Definition, JsonValue, Row, Step } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { TaskId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { pickItem } from '#sonar/domain/records-path.ts';
import { storableJson } from '#sonar/domain/records-storable.ts';
import { renderTarget } from '#sonar/domain/render.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import { checkTarget, type ParsedScope } from '#sonar/domain/scope.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { isSonarError, messageOf, SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { readerFor } from '#sonar/readers/registry.ts';
import { acceptedFiles, ownerFiles, type SourceFileRow } from '#sonar/stores/attempts.ts';
import {
  advanceExpansion,
  type ExpansionRow,
  insertExpandedTasks,
  openExpansions,
} from '#sonar/stores/expansions.ts';
import { failScanRow, findScan, lockScan, type ScanRow } from '#sonar/stores/scans.ts';
import { addRefused, noteStep, type StepRow } from '#sonar/stores/steps.ts';
import { countTasks } from '#sonar/stores/task-counts.ts';
import { insertTask } from '#sonar/stores/tasks.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { readVerified } from './read-output.ts';
import { inputsOfTemplates, readScanInputs } from './read-scan-inputs.ts';
import { readScanScope } from './read-scan-scope.ts';

export interface ExpandParts {
  database: Database;
  objects: ObjectStore;
  settings: Pick<Settings, 'SONAR_SCAN_TASK_CAP'>;
  log: Logger;
}

interface Expanding {
  scan: ScanRow;
  definition: Definition;
  steps: ReadonlyMap<string, StepRow>;
  inputs: RenderContext['inputs'];
  scope: ParsedScope;
}

const expansionsPerPass = 64;
const itemsPerTransaction = 500;
const rowsPerTransaction = 5_000;
const maxItemBytes = 65_536;
const filesPerPage = 1_000;

/**
 * Works on the scan's open expansions until they end or `signal` aborts (what is left goes on next time).
 * A source that no retry brings back fails the scan.
 */
export async function expandItems(
  parts: ExpandParts,
  scan: ScanRow,
  definition: Definition,
  steps: ReadonlyMap<string, StepRow>,
  signal: AbortSignal,
): Promise<{ made: number; more: boolean }> {
  const open = await openExpansions(parts.database, scan.scan_id, expansionsPerPass);
  if (open.length === 0) return { made: 0, more: false };
  const expanding = {
    scan,
    definition,
    steps,
    inputs: await readScanInputs(parts.database, scan.scan_id, inputsOf(definition, open)),
    scope: await readScanScope(parts.database, scan.scan_id),
  };
  let made = 0;
  let stopped = false;
  for (const expansion of open) {
    if (signal.aborted || stopped) break;
    try {
      const result = await expandOne(parts, expanding, expansion, signal);
      made += result.made;
      stopped = result.stopped;
    } catch (error) {
      stopped = await onFault(parts, scan, expansion, error);
    }
  }
  if (!stopped) return { made, more: open.length === expansionsPerPass };
  // A scan that is failing has its end to see to, and not only at the next tick.
  return { made, more: (await findScan(parts.database, scan.scan_id))?.status === 'Cancelling' };
}

function inputsOf(definition: Definition, open: readonly ExpansionRow[]): string[] {
  const steps = definition.steps.filter((step) => open.some((expansion) => expansion.step === step.name));
  return steps.flatMap((step) => [
    ...inputsOfTemplates(step),
    ...(step.foreach?.in.kind === 'input' ? [step.foreach.in.input] : []),
  ]);
}

/** True where the fault ended the scan; one that may pass leaves the other expansions their turn. */
async function onFault(
  parts: ExpandParts,
  scan: ScanRow,
  expansion: ExpansionRow,
  error: unknown,
): Promise<boolean> {
  parts.log.error({
    operation: 'expansion_failed',
    scanId: scan.scan_id,
    step: expansion.step,
    error: messageOf(error),
  });
  const lost = isSonarError(error, 'not_found') || isSonarError(error, 'invalid');
  if (lost)
    await parts.database.transaction(async (tx) => {
      await lockScan(tx, scan.scan_id);
      await failScanRow(
        tx,
        scan.scan_id,
        `${failureCodes.sourceLost}: step ${expansion.step}: ${messageOf(error)}`,
      );
    });
  else if (isSonarError(error))
    await noteStep(
      parts.database,
      scan.scan_id,
      expansion.step,
      `its items cannot be read for now: ${messageOf(error).slice(0, 300)}`,
    );
  else throw error;
  return lost;
}

async function expandOne(
  parts: ExpandParts,
  expanding: Expanding,
  expansion: ExpansionRow,
  signal: AbortSignal,
) {
  const step = expanding.definition.steps.find((candidate) => candidate.name === expansion.step);
  if (!step?.foreach)
    throw new SonarError('internal', `step ${expansion.step} has an expansion and no foreach`);
  let reached = expansion.next_ordinal;
  let ordinal = 0;
  let made = 0;
  let batch = emptyBatch();
  for await (const row of rowsOf(parts, expanding, step, expansion)) {
    if (ordinal++ < expansion.next_ordinal) {
      if (signal.aborted) return { made, stopped: true };
      continue;
    }
    const item = itemOf(step, row);
    if (item !== undefined) {
      const refusal = refusalOf(step, item, expanding);
      if (refusal === undefined) batch.items.push({ taskId: newId<TaskId>(), ordinal: ordinal - 1, item });
      else batch.refused.push(refusal);
    }
    const full = batch.items.length + batch.refused.length >= itemsPerTransaction;
    // Rows without an item are progress too: a stream of them must not be read from its start for ever.
    if (!full && ordinal - reached < rowsPerTransaction && !signal.aborted) continue;
    if (
      !(await commitBatch(parts, expanding, step, expansion, {
        batch,
        from: reached,
        to: ordinal,
        madeBefore: made,
        done: false,
      }))
    )
      return { made, stopped: true };
    made += batch.items.length;
    reached = ordinal;
    batch = emptyBatch();
    if (signal.aborted) return { made, stopped: true };
  }
  const committed = await commitBatch(parts, expanding, step, expansion, {
    batch,
    from: reached,
    to: ordinal,
    madeBefore: made,
    done: true,
  });
  return { made: committed ? made + batch.items.length : made, stopped: !committed };
}

interface Batch {
  items: { taskId: TaskId; ordinal: number; item: JsonValue }[];
  refused: string[];
}
const emptyBatch = (): Batch => ({ items: [], refused: [] });

/** False where the scan is no longer Running or another pass has moved the expansion. */
function commitBatch(
  parts: ExpandParts,
  { scan, steps }: Expanding,
  step: Step,
  expansion: ExpansionRow,
  progress: { batch: Batch; from: number; to: number; madeBefore: number; done: boolean },
): Promise<boolean> {
  const { batch } = progress;
  return parts.database.transaction(async (tx) => {
    const locked = await lockScan(tx, scan.scan_id);
    if (locked?.status !== 'Running' || locked.generation !== scan.generation) return false;
    const cap = parts.settings.SONAR_SCAN_TASK_CAP;
    if ((await countTasks(tx, scan.scan_id)) + batch.items.length > cap) {
      await failScanRow(
        tx,
        scan.scan_id,
        `${failureCodes.taskCap}: step ${step.name} would take the scan past ${cap} tasks`,
      );
      return false;
    }
    const moved = await advanceExpansion(tx, expansion.expansion_id, progress.from, {
      nextOrdinal: progress.to,
      made: batch.items.length,
      done: progress.done,
    });
    if (moved === 0) return false;
    const owner = { scanId: scan.scan_id, workspaceId: scan.workspace_id };
    const common = {
      step: step.name,
      parentTaskId: expansion.parent_task_id,
      sourcesId: steps.get(step.name)?.sources_id ?? null,
      definitionRevision: scan.definition_revision,
    };
    if (batch.items.length > 0) await insertExpandedTasks(tx, { ...owner, ...common }, batch.items);
    if (batch.refused.length > 0)
      await addRefused(tx, scan.scan_id, step.name, batch.refused.length, `refused: ${batch.refused[0]}`);
    const madeInAll = expansion.made + progress.madeBefore + batch.items.length;
    if (progress.done && madeInAll === 0)
      await insertTask(tx, owner, { ...common, taskId: newId(), noWork: true });
    return true;
  });
}

function itemOf(step: Step, row: Row | string): JsonValue | undefined {
  if (typeof row === 'string') return storableJson(row);
  const item = pickItem(row, step.foreach?.pick ?? null);
  return item === undefined ? undefined : storableJson(item);
}

/** Why an item may not become a task, or undefined. */
function refusalOf(step: Step, item: JsonValue, { inputs, scope }: Expanding): string | undefined {
  if (Buffer.byteLength(JSON.stringify(item)) > maxItemBytes)
    return `an item is larger than ${maxItemBytes} bytes`;
  if (step.target === null) return undefined;
  const rendered = renderTarget(step, { item, inputs });
  if (!rendered.ok) return rendered.reason;
  for (const target of rendered.targets) {
    const check = checkTarget(scope, target);
    if (check.kind === 'refused')
      return `${JSON.stringify(target).slice(0, 200)} is ${reasons[check.reason]}`;
  }
  return undefined;
}
const reasons = {
  denied: 'denied by the scope',
  not_allowed: 'outside the scope',
  unparseable: 'no host, URL or CIDR',
};

async function* rowsOf(
  parts: ExpandParts,
  expanding: Expanding,
  step: Step,
  expansion: ExpansionRow,
): AsyncIterable<Row | string> {
  const source = step.foreach?.in;
  if (source?.kind === 'input') {
    const lines = expanding.inputs[source.input];
    yield* Array.isArray(lines) ? lines : [];
    return;
  }
  if (source?.kind !== 'output') return;
  const upstream = expanding.definition.steps.find((candidate) => candidate.name === source.step);
  const read = upstream?.outputs.find((output) => output.name === source.output)?.read;
  if (!read) throw new SonarError('internal', `${source.step}.${source.output} has no reader`);
  for await (const file of filesOf(parts, expanding, step, expansion, source))
    for await (const event of readerFor(read).read(await readVerified(parts.objects, file), read))
      if (event.kind === 'row') yield event.row;
}

async function* filesOf(
  parts: ExpandParts,
  expanding: Expanding,
  step: Step,
  expansion: ExpansionRow,
  source: { step: string; output: string },
): AsyncIterable<SourceFileRow> {
  const single = step.needs.some((need) => need.step === source.step && need.mode === 'single');
  if (single && expansion.parent_task_id !== null) {
    yield* await acceptedFiles(parts.database, expansion.parent_task_id, source.output);
    return;
  }
  const owner = expanding.steps.get(step.name)?.sources_id;
  if (!owner) return;
  let after = { source: -1, path: '' };
  for (;;) {
    const page = await ownerFiles(parts.database, owner, source, after, filesPerPage);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < filesPerPage) return;
    after = { source: last.source, path: last.path };
  }
}
