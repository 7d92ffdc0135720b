// Whether a compiled step fits surroundings that its own text did not have: inputs of a scan that was started
// earlier, steps of another revision, parts that are pinned. The rules of templates are those of the compiler.
import {
  type FileSpec,
  type InputSpec,
  type InputType,
  listInputTypes,
  type Source,
  type Step,
  type StepInputSpec,
  type Template,
} from '#sonar/contracts/definition.ts';
import { scanInputsOf } from '#sonar/domain/step-inputs.ts';
import { checkTemplates } from './check-templates.ts';
import { ProblemList } from './problem-list.ts';
import { readerEntry } from './reader-catalog.ts';
import type { Place } from './source-node.ts';
import type { PlacedTemplate, StepDraft, TemplateUse } from './step-draft.ts';

export interface StepSurroundings {
  /** The inputs that there are, with the types that their values have. */
  inputs: Readonly<Record<string, InputType>>;
  /** Those of them that are stored files, which no template can name. */
  stored: ReadonlySet<string>;
  /** Of the step's own revision. */
  files: Record<string, FileSpec>;
  stepOf: (name: string) => Step | undefined;
}

/** For people; empty where the step fits. */
export function stepFaults(step: Step, around: StepSurroundings): string[] {
  const missing = step.needs.filter((need) => around.stepOf(need.step) === undefined);
  if (missing.length > 0)
    return missing.map((need) => `it needs the step "${need.step}", which is not there`);
  const sources = [
    ...(step.foreach === null ? [] : [foreachFault(step, step.foreach, around)]),
    ...step.inputs.map((input) => inputFault(step, input, around)),
  ].filter((fault) => fault !== null);
  if (sources.length > 0) return sources;
  const stored = scanInputsOf(step).filter((name) => around.stored.has(name));
  return [
    ...stored.map((name) => `the input "${name}" of this scan is a stored file, which no template can name`),
    ...templateFaults(step, around),
  ];
}

type Foreach = NonNullable<Step['foreach']>;

function foreachFault(step: Step, foreach: Foreach, around: StepSurroundings): string | null {
  const source = foreach.in;
  if (source.kind === 'input') {
    const type = typeOf(around, source.input);
    if (type === undefined) return noInput(source.input);
    return listInputTypes.includes(type) ? null : `the input "${source.input}" is one ${type}, not a list`;
  }
  const output = outputOf(step, source, around);
  if (typeof output === 'string') return output;
  if (foreach.files) return null;
  const name = `${source.step}.${source.output}`;
  if (output.read === null) return `"${name}" has no reader, so it has no rows`;
  return fieldFault(name, output.read.reader, foreach.pick ?? foreach.group);
}

function inputFault(step: Step, input: StepInputSpec, around: StepSurroundings): string | null {
  const source = input.from;
  if (source.kind === 'input') {
    const type = typeOf(around, source.input);
    if (type === undefined) return noInput(source.input);
    const list = listInputTypes.includes(type);
    return list === (input.as !== 'file')
      ? null
      : `the input "${source.input}" is ${list ? 'a list' : `one ${type}`}`;
  }
  const output = outputOf(step, source, around);
  if (typeof output === 'string') return output;
  if (input.as === 'file' || input.as === 'directory') return null;
  const name = `${source.step}.${source.output}`;
  if (output.read === null)
    return input.as === 'lines' && input.pick === null ? null : `"${name}" has no reader, so it has no rows`;
  if (input.as === 'lines' && input.pick === null) return `a row of "${name}" is no line`;
  return fieldFault(name, output.read.reader, input.pick);
}

const noInput = (name: string): string => `there is no input "${name}"`;
const typeOf = ({ inputs }: StepSurroundings, name: string): InputType | undefined =>
  Object.hasOwn(inputs, name) ? inputs[name] : undefined;

function outputOf(
  step: Step,
  source: Extract<Source, { kind: 'output' }>,
  around: StepSurroundings,
): Step['outputs'][number] | string {
  const output = around.stepOf(source.step)?.outputs.find(({ name }) => name === source.output);
  if (output === undefined) return `there is no output "${source.step}.${source.output}"`;
  return step.needs.some((need) => need.step === source.step)
    ? output
    : `"${source.step}" is not among its needs`;
}

function fieldFault(name: string, reader: string, field: string | null): string | null {
  const fields = readerEntry(reader)?.rowFields ?? null;
  if (field === null || fields === null || Object.hasOwn(fields, field)) return null;
  return `rows of "${name}" have no field "${field}"`;
}

function templateFaults(step: Step, around: StepSurroundings): string[] {
  const problems = new ProblemList('');
  const upstream = step.needs.flatMap((need) => around.stepOf(need.step) ?? []);
  const drafts = [step, ...upstream].map(draftOf);
  const [own] = drafts;
  const inputs = Object.fromEntries(
    Object.entries(around.inputs).map(([name, type]) => [name, specOf(type)] as const),
  );
  if (own !== undefined) checkTemplates({ problems, inputs, files: around.files, drafts }, own);
  return problems.sorted().map(({ path, message }) => `${path}: ${message}`);
}

const specOf = (type: InputType): InputSpec => ({ type, required: false, default: null, help: null });

const placeAt = (path: string): Place => ({
  path,
  node: { kind: 'scalar', at: 0, text: '', isNull: false, textAt: null },
});
const entryAt = (path: string, key: string) => ({ ...placeAt(path), key, keyAt: 0 });

/** A compiled step in the shape in which its text was checked; places are its fields' names. */
function draftOf(step: Step): StepDraft {
  const nowhere = { pick: null, unique: null, as: null };
  return {
    step,
    entry: entryAt(step.name, step.name),
    needs: [],
    foreach:
      step.foreach === null
        ? null
        : {
            ...nowhere,
            entry: placeAt('foreach'),
            in: null,
            group: null,
            split: null,
            form: null,
            batch: step.foreach.batch === null ? null : placeAt('foreach.batch'),
          },
    inputs: step.inputs.map((spec) => {
      const entry = entryAt(`inputs.${spec.name}`, spec.name);
      return { ...nowhere, spec, entry, from: null, asPlace: entry };
    }),
    outputs: step.outputs.map((spec) => ({ spec, entry: entryAt(`outputs.${spec.name}`, spec.name) })),
    templates: [
      ...step.command.map((template, index) =>
        placed(index === 0 ? 'program' : 'argument', `command[${index}]`, template),
      ),
      ...Object.entries(step.env).map(([name, template]) => placed('env', `env.${name}`, template)),
      ...(step.stdin === null ? [] : [placed('stdin', 'stdin', step.stdin)]),
      ...(step.target === null ? [] : [placed('target', 'target', step.target)]),
    ],
  };
}

const placed = (use: TemplateUse, path: string, template: Template): PlacedTemplate => ({
  use,
  path,
  template,
  parts: template.map((part) => ({ part, at: 0 })),
});
