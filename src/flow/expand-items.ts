// A foreach under way: the items of its stream become tasks, a batch a transaction. The batch and the place it
// reaches commit together, so an expansion goes on after a crash where it was, and never makes an item twice.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { TaskId } from '#sonar/contracts/ids.ts';
import { itemInput } from '#sonar/contracts/names.ts';
import type { Db } from '#sonar/db/pool.ts';
import type { LiveDefinition } from '#sonar/definition/live-definition.ts';
import { digestOf, type StreamFile } from '#sonar/domain/judge-item.ts';
import { scanInputsRead, targetInput } from '#sonar/domain/step-inputs.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import { claimUnique, openExpansions, stageRows } from '#sonar/stores/expansions.ts';
import { findScan, type ScanRow } from '#sonar/stores/scans.ts';
import type { StepRow } from '#sonar/stores/steps.ts';
import {
  commitExpansion,
  type ExpandedTask,
  type Expanding,
  type ExpandParts,
  here,
  type Progress,
} from './commit-expansion.ts';
import { onSourceFault } from './fail-scan.ts';
import { elementsOf, type StreamPlace } from './item-stream.ts';
import { makeInputs } from './make-inputs.ts';
import { makeStagedTasks } from './make-staged-tasks.ts';
import { readScanInputs } from './read-scan-inputs.ts';
import { readScanScope } from './read-scan-scope.ts';

const expansionsPerPass = 64;
// 500 took half as long again; more held the scan's lock longer and gave nothing.
const itemsPerTransaction = 2_000;
// Items may be large: what a transaction carries, and memory with it, is bounded apart.
const bytesPerTransaction = 4 * 1024 * 1024;
// Places of the stream that give nothing are cheap; but how far a pass came must not be lost for ever.
const placesPerTransaction = 20_000;

/**
 * Works on the scan's open expansions until they end or `signal` aborts (what is left goes on next time).
 * A source that no retry brings back fails the scan.
 */
export async function expandItems(
  parts: ExpandParts,
  scan: ScanRow,
  definition: LiveDefinition,
  steps: ReadonlyMap<string, StepRow>,
  signal: AbortSignal,
): Promise<{ made: number; more: boolean }> {
  const open = await openExpansions(parts.database, scan.scan_id, expansionsPerPass);
  if (open.length === 0) return { made: 0, more: false };
  const names = definition.steps
    .filter((step) => open.some((expansion) => expansion.step === step.name))
    .flatMap((step) => scanInputsRead(step));
  const inputs = await readScanInputs(parts.database, scan.scan_id, names);
  const scope = await readScanScope(parts.database, scan.scan_id);
  let made = 0;
  let stopped = false;
  for (const expansion of open) {
    if (signal.aborted || stopped) break;
    const step = definition.steps.find((candidate) => candidate.name === expansion.step);
    if (!step?.foreach)
      throw new SonarError('internal', `step ${expansion.step} has an expansion and no foreach`);
    const sourcesId = steps.get(step.name)?.sources_id ?? null;
    const { foreach } = step;
    const expanding = { scan, definition, step, foreach, expansion, sourcesId, inputs, scope };
    try {
      const result = await expandOne(parts, expanding, signal);
      made += result.made;
      stopped = result.stopped;
    } catch (error) {
      stopped = await onSourceFault(parts, scan.scan_id, expansion.step, error);
    }
  }
  if (!stopped) return { made, more: open.length === expansionsPerPass };
  // A scan that is failing has its end to see to, and not only at the next tick.
  return { made, more: (await findScan(parts.database, scan.scan_id))?.status === 'Cancelling' };
}

async function expandOne(parts: ExpandParts, expanding: Expanding, signal: AbortSignal): Promise<Progress> {
  const { step, expansion, foreach } = expanding;
  const footing = { parentTaskId: expansion.parent_task_id, sourcesId: expanding.sourcesId };
  const lines = await makeInputs(parts, expanding, step, footing);
  const target = targetInput(step);
  if (target !== null && lines.get(target) === 0) {
    const idle = await commitExpansion(parts, expanding, { ...here(expansion), tasks: [], done: true });
    return { made: 0, stopped: idle === null };
  }
  if (foreach.group === null && foreach.batch === null) return walk(parts, expanding, signal);
  let made = 0;
  if (!expansion.staged) {
    const staging = await walk(parts, expanding, signal);
    if (staging.stopped) return staging;
    ({ made } = staging);
  }
  const making = await makeStagedTasks(parts, expanding, signal);
  return { made: made + making.made, stopped: making.stopped };
}

interface StreamItem {
  ordinal: number;
  item: JsonValue;
  file: StreamFile | null;
  groupKey: string | null;
  digest: string | null;
}

interface Window {
  items: StreamItem[];
  bytes: number;
  refused: string[];
  refusals: number;
}
const emptyWindow = (): Window => ({ items: [], bytes: 0, refused: [], refusals: 0 });

const isFull = ({ items, bytes }: Window): boolean =>
  items.length >= itemsPerTransaction || bytes >= bytesPerTransaction;

/** Goes through the stream from where the expansion is: to tasks, or to staged rows. */
async function walk(parts: ExpandParts, expanding: Expanding, signal: AbortSignal): Promise<Progress> {
  const { expansion, foreach, step } = expanding;
  const staging = foreach.group !== null || foreach.batch !== null;
  const footing = { parentTaskId: expansion.parent_task_id, sourcesId: expanding.sourcesId };
  const place = { byte: expansion.at_byte, ordinal: expansion.at_ordinal };
  const from = expansion.next_ordinal;
  let { ordinal } = place;
  let made = 0;
  let window = emptyWindow();
  const settle = async (done: boolean): Promise<boolean> => {
    const committed = await commitWindow(parts, expanding, { window, to: ordinal, place, staging, done });
    if (committed === null) return false;
    made += committed;
    window = emptyWindow();
    return true;
  };
  const context = { ...expanding, scanId: expanding.scan.scan_id, footing };
  for await (const element of elementsOf(parts, context, place, from)) {
    // However long that takes, something is added before the next stop: else no pass would ever come further.
    if (ordinal++ < from) continue;
    if (element.kind === 'refused') {
      window.refusals += 1;
      if (window.refused.length === 0) window.refused.push(element.reason);
    } else if (element.kind === 'item') {
      const { item, file, groupKey } = element;
      const digest = foreach.unique ? (file?.sha256 ?? digestOf(item)) : null;
      window.items.push({ ordinal: ordinal - 1, item, file, groupKey, digest });
      window.bytes += typeof item === 'string' ? item.length : JSON.stringify(item).length;
    }
    if (!isFull(window) && ordinal - expansion.next_ordinal < placesPerTransaction) continue;
    if (!(await settle(false)) || signal.aborted) return { made, stopped: true };
  }
  const whole = await settle(true);
  parts.log.debug({ operation: 'stream_walked', scanId: expanding.scan.scan_id, step: step.name, ordinal });
  return { made, stopped: !whole };
}

/** @returns how many tasks were made; null where the scan does not run or another pass was faster. */
async function commitWindow(
  parts: ExpandParts,
  expanding: Expanding,
  {
    window,
    to,
    place,
    staging,
    done,
  }: { window: Window; to: number; place: StreamPlace; staging: boolean; done: boolean },
): Promise<number | null> {
  const { scan, step, expansion } = expanding;
  const owner = {
    scanId: scan.scan_id,
    workspaceId: scan.workspace_id,
    step: step.name,
    expansionId: expansion.expansion_id,
  };
  return commitExpansion(parts, expanding, {
    nextOrdinal: to,
    nextGroup: expansion.next_group,
    atByte: place.byte,
    atOrdinal: place.ordinal,
    refused: window.refusals,
    reason: window.refused[0],
    staged: staging && done,
    done: done && !staging,
    tasks: async (tx) => {
      const items = await withoutKnown(tx, owner, window.items);
      if (!staging) return items.map((item) => taskOf(item));
      const rows = items.map(({ ordinal, item, file, groupKey }) => ({
        ordinal,
        groupKey,
        item: file === null ? item : { ...file },
      }));
      if (rows.length > 0) await stageRows(tx, owner, rows);
      return [];
    },
  });
}

/** Only the first of each value, and none that the scan's step has had; the order stays. */
async function withoutKnown(
  tx: Db,
  owner: Parameters<typeof claimUnique>[1],
  items: StreamItem[],
): Promise<StreamItem[]> {
  const digests = [...new Set(items.flatMap(({ digest }) => (digest === null ? [] : [digest])))];
  if (digests.length === 0) return items;
  const fresh = await claimUnique(tx, owner, digests);
  return items.filter(({ digest }) => digest === null || fresh.delete(digest));
}

const taskOf = ({ ordinal, item, file }: StreamItem): ExpandedTask => ({
  taskId: newId<TaskId>(),
  ordinal,
  item,
  files: file === null ? [] : [{ ...file, input: itemInput }],
});
