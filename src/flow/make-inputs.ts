// Input files that are made of rows: merged, picked, without repetitions, and without what the scope keeps out.
// Each is made once for its owner and stored under its hash; tasks wait for it and are placed when it is there.
import type { JsonValue, ReadSpec, Step, StepInputSpec } from '#sonar/contracts/definition.ts';
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import { inputObjectKey } from '#sonar/contracts/names.ts';
import { type LiveDefinition, pinnedRead } from '#sonar/definition/live-definition.ts';
import { LineFilter } from '#sonar/domain/line-filter.ts';
import { pickItem } from '#sonar/domain/records-path.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import type { ParsedScope } from '#sonar/domain/scope.ts';
import { inputOwner, madeInputs, scanInputsRead, targetInput } from '#sonar/domain/step-inputs.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import {
  inputFilesOf,
  insertInputFile,
  type NewInputFile,
  releaseWaitingTasks,
  tasksWithoutInputs,
  type WaitingTaskRow,
} from '#sonar/stores/input-files.ts';
import { lockScan, type ScanRow } from '#sonar/stores/scans.ts';
import { addRefused, stepsPinnedAs } from '#sonar/stores/steps.ts';
import { scanInputFile } from '#sonar/stores/stored-files.ts';
import type { ExpandParts } from './commit-expansion.ts';
import { onSourceFault } from './fail-scan.ts';
import { InputSpool, type StoredInput } from './input-spool.ts';
import { linesOfInput } from './read-list.ts';
import { readVerified } from './read-output.ts';
import { readScanInputs } from './read-scan-inputs.ts';
import { readScanScope } from './read-scan-scope.ts';
import { type Footing, filesOfSource, type OutputSource, rowsOfSource } from './read-source.ts';

interface Making {
  scan: ScanRow;
  definition: LiveDefinition;
  inputs: RenderContext['inputs'];
  scope: ParsedScope;
}

const tasksPerPage = 200;
const tasksAtOnce = 8;

/** Makes what the waiting tasks of a scan read and lets them go, until none waits or `signal` aborts. */
export async function makeWaitingInputs(
  parts: ExpandParts,
  scan: ScanRow,
  definition: LiveDefinition,
  signal: AbortSignal,
): Promise<{ released: number; more: boolean }> {
  const names = definition.steps.flatMap((step) => (madeInputs(step).length > 0 ? scanInputsRead(step) : []));
  const inputs = await readScanInputs(parts.database, scan.scan_id, names);
  const scope = await readScanScope(parts.database, scan.scan_id);
  const making = { scan, definition, inputs, scope };
  let released = 0;
  let after: string | null = null;
  while (!signal.aborted) {
    const page: WaitingTaskRow[] = await tasksWithoutInputs(
      parts.database,
      scan.scan_id,
      after,
      tasksPerPage,
    );
    released += await releasePage(parts, making, page);
    after = page.at(-1)?.task_id ?? null;
    if (page.length < tasksPerPage) return { released, more: false };
  }
  return { released, more: true };
}

async function releasePage(parts: ExpandParts, making: Making, page: WaitingTaskRow[]): Promise<number> {
  const ready: { taskId: TaskId; step: string }[] = [];
  const noWork: TaskId[] = [];
  const prepare = async (task: WaitingTaskRow): Promise<void> => {
    const step = making.definition.steps.find((candidate) => candidate.name === task.step);
    if (step === undefined) return;
    const footing = { parentTaskId: task.parent_task_id, sourcesId: task.sources_id };
    try {
      const lines = await makeInputs(parts, making, step, footing);
      ready.push({ taskId: task.task_id, step: task.step });
      const target = targetInput(step);
      if (target !== null && lines.get(target) === 0) noWork.push(task.task_id);
    } catch (error) {
      await onSourceFault(parts, making.scan.scan_id, task.step, error);
    }
  };
  for (let at = 0; at < page.length; at += tasksAtOnce)
    await Promise.all(page.slice(at, at + tasksAtOnce).map(prepare));
  if (ready.length === 0) return 0;
  const { scan, definition } = making;
  return parts.database.transaction(async (tx) => {
    await lockScan(tx, scan.scan_id);
    // A task that came with other pins since then waits for a pass that knows them.
    const current = await stepsPinnedAs(tx, scan.scan_id, pinsOfSteps(definition, ready));
    const released = ready.flatMap(({ taskId, step }) => (current.has(step) ? [taskId] : []));
    await releaseWaitingTasks(tx, released, noWork);
    return released.length;
  });
}

const pinsOfSteps = (definition: LiveDefinition, of: readonly { step: string }[]): LiveDefinition['pins'] =>
  new Map([...definition.pins].filter(([step]) => of.some((task) => task.step === step)));

/** Makes what is missing of one owner's files. @returns input → how many lines it has. */
export async function makeInputs(
  parts: ExpandParts,
  making: Making,
  step: Step,
  footing: Footing,
): Promise<Map<string, number>> {
  const specs = madeInputs(step);
  const lines = new Map<string, number>();
  if (specs.length === 0) return lines;
  const { scan } = making;
  const owners = { scan: scan.scan_id, parent: footing.parentTaskId, sources: footing.sourcesId };
  const known = await inputFilesOf(
    parts.database,
    scan.scan_id,
    step.name,
    Object.values(owners).filter((owner) => owner !== null),
  );
  for (const spec of specs) {
    const ownerId = owners[inputOwner(step, spec)];
    if (ownerId === null)
      throw new SonarError('internal', `step ${step.name}: input ${spec.name} has no source`);
    const there = known.find((row) => row.owner_id === ownerId && row.input === spec.name);
    lines.set(spec.name, there?.lines ?? (await makeOne(parts, making, step, spec, footing, ownerId)));
  }
  return lines;
}

async function makeOne(
  parts: ExpandParts,
  making: Making,
  step: Step,
  spec: StepInputSpec,
  footing: Footing,
  ownerId: string,
): Promise<number> {
  const { scan } = making;
  const owner = { scanId: scan.scan_id, workspaceId: scan.workspace_id };
  const given =
    spec.from.kind === 'input' && spec.as === 'file'
      ? await scanInputFile(parts.database, scan.scan_id, spec.from.input)
      : undefined;
  if (given !== undefined) {
    // Stored as it is: the scan's file is the step's.
    const { object_key: objectKey, size, sha256 } = given;
    const file = {
      objectKey,
      size,
      sha256,
      ownerId,
      step: step.name,
      input: spec.name,
      lines: 1,
      refused: 0,
    };
    await keepFile(parts, making, owner, file, undefined);
    return 1;
  }
  await using spool = new InputSpool(parts.settings.SONAR_OUTPUT_CAP_BYTES);
  const writing = new LineWriting(spool, spec, targetInput(step) === spec.name ? making.scope : null);
  if (spec.as === 'file') await writeBytes(parts, making, step, spec, footing, writing);
  else if (spec.from.kind === 'input') await writeList(parts, scan.scan_id, spec.from.input, writing);
  else
    for await (const value of valuesOf(parts, making, step, spec, footing, spec.from))
      await writing.add(value);
  const stored: StoredInput = await spool.store(parts.objects, (sha256) =>
    inputObjectKey(scan.workspace_id, scan.scan_id, sha256),
  );
  const { lines, refused, reason } = writing;
  const file = { ...stored, ownerId, step: step.name, input: spec.name, lines, refused };
  await keepFile(parts, making, owner, file, reason);
  return lines;
}

/** Not of a step that has begun anew meanwhile: it may read other things by now, or check them against the scope. */
async function keepFile(
  parts: Pick<ExpandParts, 'database'>,
  { definition }: Making,
  owner: Parameters<typeof insertInputFile>[1],
  file: NewInputFile,
  reason: string | undefined,
): Promise<void> {
  const { scanId } = owner;
  const { step, refused } = file;
  await parts.database.transaction(async (tx) => {
    await lockScan(tx, scanId);
    const current = await stepsPinnedAs(tx, scanId, pinsOfSteps(definition, [file]));
    if (!current.has(step)) return;
    if ((await insertInputFile(tx, owner, file)) === 1 && refused > 0)
      await addRefused(tx, scanId, step, refused, `refused: ${reason ?? ''}`);
  });
}

/** Lines of one file: refused ones are counted, and the first says why. */
class LineWriting {
  readonly #spool: InputSpool;
  readonly #filter: LineFilter;
  lines = 0;
  refused = 0;
  reason: string | undefined;

  constructor(spool: InputSpool, spec: StepInputSpec, scope: ParsedScope | null) {
    this.#spool = spool;
    this.#filter = new LineFilter(spec, scope);
  }

  async add(value: JsonValue): Promise<void> {
    for (const judged of this.#filter.linesOf(value)) {
      if (judged.line === null) this.refuse(judged.reason);
      else {
        await this.#spool.write(`${judged.line}\n`);
        this.lines += 1;
      }
    }
  }

  refuse(reason: string): void {
    this.refused += 1;
    this.reason ??= reason;
  }

  /** Bytes as they are; the next file begins on a line of its own. */
  async bytes(pieces: AsyncIterable<Uint8Array>): Promise<void> {
    let last = newline;
    for await (const piece of pieces) {
      if (piece.byteLength === 0) continue;
      if (this.#broken) await this.#spool.write('\n');
      this.#broken = false;
      await this.#spool.write(piece);
      last = piece.at(-1) ?? newline;
    }
    this.#broken = last !== newline;
    this.lines += 1;
  }
  #broken = false;
}

const newline = 0x0a;

async function writeList(
  parts: ExpandParts,
  scanId: ScanId,
  input: string,
  writing: LineWriting,
): Promise<void> {
  for await (const { text, fault } of linesOfInput(parts, scanId, input))
    if (text === null) writing.refuse(fault);
    else await writing.add(text);
}

async function* valuesOf(
  parts: ExpandParts,
  { scan, definition }: Making,
  step: Step,
  spec: StepInputSpec,
  footing: Footing,
  from: OutputSource,
): AsyncIterable<JsonValue> {
  const pinned = pinnedRead(definition, step.name, from);
  const reading = pinned === null ? { always: plainLines } : { pinned };
  const pick = pinned === null ? 'line' : spec.pick;
  for await (const row of rowsOfSource({ ...parts, scan }, reading, step, footing, from)) {
    const value = pickItem(row, pick);
    if (value !== undefined) yield value;
  }
}

/** Of an output that no reader was named for. */
const plainLines: ReadSpec = { reader: 'lines', record: null, fields: {} };

async function writeBytes(
  parts: ExpandParts,
  { inputs }: Making,
  step: Step,
  spec: StepInputSpec,
  footing: Footing,
  writing: LineWriting,
): Promise<void> {
  if (spec.from.kind === 'input') {
    const value = inputs[spec.from.input] ?? '';
    await writing.bytes(once(Buffer.from(Array.isArray(value) ? value.join('\n') : value)));
    return;
  }
  for await (const file of filesOfSource(parts.database, step, footing, spec.from))
    await writing.bytes(await readVerified(parts.objects, file));
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
