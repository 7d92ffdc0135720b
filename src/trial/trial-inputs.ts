// The files that a command is given, made like a scan makes them, in a folder of the trial.
import { createReadStream, createWriteStream } from 'node:fs';
import { copyFile, mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Definition, JsonValue, Step, StepInputSpec } from '#sonar/contracts/definition.ts';
import { batchInput, fileInput, itemInput } from '#sonar/contracts/names.ts';
import { LineFilter } from '#sonar/domain/line-filter.ts';
import { lineOf } from '#sonar/domain/list-line.ts';
import { pickItem } from '#sonar/domain/records-path.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import type { ParsedScope } from '#sonar/domain/scope.ts';
import { dispatchedInputs, isOfParent, targetInput } from '#sonar/domain/step-inputs.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { filesOf, type GivenOutputs, type OutputSource, readOf, rowsOf } from './given-files.ts';
import type { TrialItem } from './trial-items.ts';

export interface InputMaking {
  definition: Definition;
  step: Step;
  inputs: RenderContext['inputs'];
  /** Files that were given for inputs of type `file`. */
  inputFiles: ReadonlyMap<string, string>;
  given: GivenOutputs;
  scope: ParsedScope;
  /** Of the definition, which its `files` are relative to. */
  definitionFolder: string;
  folder: string;
}

export interface MadeInputs {
  paths: Map<string, string>;
  /** Lines that the scope or their form keeps out of files. */
  refused: string[];
  /** The target is a file, and nothing is left in it. */
  nothingToDo: boolean;
}

/** @throws SonarError `usage` where something is not given or not there. */
export async function makeTrialInputs(making: InputMaking, item: TrialItem): Promise<MadeInputs> {
  const { step, definition, folder } = making;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const made: MadeInputs = { paths: new Map(), refused: [], nothingToDo: false };
  for (const spec of step.inputs) {
    const path = join(folder, spec.name);
    made.paths.set(spec.name, path);
    if (spec.as === 'directory') await makeDirectory(making, spec, path);
    else if (spec.as === 'file') await makeWhole(making, spec, path);
    else await makeLines(making, spec, path, made);
  }
  const { foreach } = step;
  if (foreach?.batch != null) {
    const form = foreach.batch.as === 'jsonl' ? 'jsonl' : 'lines';
    const path = join(folder, batchInput);
    const lines = item.batch
      .map((value) => lineOf(form, value))
      .flatMap((line) => (line.ok ? line.line : []));
    await writeFile(path, lines.map((line) => `${line}\n`).join(''));
    made.paths.set(batchInput, path);
  }
  if (item.file !== null) {
    const path = join(folder, itemInput);
    await copyFile(item.file, path);
    made.paths.set(itemInput, path);
  }
  for (const { name } of dispatchedInputs(step, definition.files)) {
    const file = name.startsWith(fileInput('')) ? name.slice(fileInput('').length) : undefined;
    const spec = file === undefined ? undefined : definition.files[file];
    if (spec !== undefined) made.paths.set(name, await ownFile(making, spec.path));
  }
  return made;
}

async function ownFile({ definitionFolder }: InputMaking, path: string): Promise<string> {
  const file = resolve(definitionFolder, path);
  if ((await stat(file).catch(() => null)) === null)
    throw new SonarError('usage', `the definition names the file ${path}, which is not at ${file}`);
  return file;
}

async function makeDirectory(making: InputMaking, spec: StepInputSpec, path: string): Promise<void> {
  await mkdir(path);
  if (spec.from.kind === 'input') return;
  const single = isOfParent(making.step, spec.from);
  for (const file of await filesOf(making.given, spec.from)) {
    const below = single ? file.path : join(String(file.source).padStart(6, '0'), file.path);
    await mkdir(dirname(join(path, below)), { recursive: true });
    await copyFile(file.file, join(path, below));
  }
}

async function makeWhole(making: InputMaking, spec: StepInputSpec, path: string): Promise<void> {
  if (spec.from.kind === 'input') {
    const file = making.inputFiles.get(spec.from.input);
    const value = making.inputs[spec.from.input] ?? '';
    if (file !== undefined) await copyFile(file, path);
    else await writeFile(path, Array.isArray(value) ? value.join('\n') : value);
    return;
  }
  await writeFile(path, '');
  for (const { file } of await filesOf(making.given, spec.from))
    await pipeline(createReadStream(file), createWriteStream(path, { flags: 'a' }));
}

async function makeLines(
  making: InputMaking,
  spec: StepInputSpec,
  path: string,
  made: MadeInputs,
): Promise<void> {
  const isTarget = targetInput(making.step) === spec.name;
  const filter = new LineFilter(spec, isTarget ? making.scope : null);
  const file = createWriteStream(path);
  let lines = 0;
  for await (const value of valuesOf(making, spec))
    for (const judged of filter.linesOf(value))
      if (judged.line === null) made.refused.push(judged.reason);
      else {
        lines += 1;
        file.write(`${judged.line}\n`);
      }
  await new Promise<void>((done, failed) => {
    file.once('error', failed);
    file.end(() => done());
  });
  if (isTarget && lines === 0) made.nothingToDo = true;
}

async function* valuesOf(making: InputMaking, spec: StepInputSpec): AsyncGenerator<JsonValue> {
  const { from } = spec;
  if (from.kind === 'input') {
    const value = making.inputs[from.input];
    yield* Array.isArray(value) ? value : [];
    return;
  }
  yield* picked(making, spec, from);
}

/** An output that no reader was named for is read as lines. */
async function* picked(
  { definition, given }: InputMaking,
  spec: StepInputSpec,
  from: OutputSource,
): AsyncGenerator<JsonValue> {
  const read = readOf(definition, from);
  const pick = read === null ? 'line' : spec.pick;
  for await (const row of rowsOf(given, from, read ?? { reader: 'lines', record: null, fields: {} })) {
    const value = pickItem(row, pick);
    if (value !== undefined) yield value;
  }
}
