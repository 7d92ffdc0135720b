// What a step's input files are made of, and in which form.
import { listInputTypes, type StepInputForm, type StepInputSpec } from '#sonar/contracts/definition.ts';
import {
  checkField,
  isRead,
  type OutputSource,
  readerOf,
  type Surroundings,
  sourceOf,
} from './check-sources.ts';
import type { InputDraft, StepDraft } from './step-draft.ts';

/** Completes `inputs` of one step. */
export function resolveInputSources(around: Surroundings, draft: StepDraft): void {
  for (const input of draft.inputs) {
    const from = input.from === null ? null : sourceOf(around, draft, input.from);
    if (from === null) continue;
    input.spec.from = from;
    if (from.kind === 'input') ofScanInput(around, input, from.input);
    else ofOutput(around, draft, input, from);
  }
}

function ofScanInput({ reading, inputs }: Surroundings, input: InputDraft, name: string): void {
  const { spec } = input;
  const type = inputs[name]?.type ?? 'lines';
  const list = listInputTypes.includes(type);
  spec.as = input.as ?? (list ? 'lines' : 'file');
  // A list as a file is its lines.
  if (list && spec.as === 'file') spec.as = 'lines';
  if (spec.as === 'directory' || (!list && spec.as !== 'file')) {
    const hint = list ? 'write `as: lines` or `as: jsonl`' : 'write `as: file`';
    reading.fault(input.asPlace, `\`inputs.${name}\` is ${list ? 'a list of lines' : `one ${type}`}`, hint);
  }
  if (input.pick !== null)
    reading.fault(input.pick, `\`inputs.${name}\` has no fields to pick`, 'leave `pick` out');
  if (!list && spec.unique && input.unique !== null)
    reading.fault(input.unique, `\`inputs.${name}\` is one ${type}, not a list`, 'leave `unique` out');
}

function ofOutput(around: Surroundings, draft: StepDraft, input: InputDraft, from: OutputSource): void {
  const { spec } = input;
  spec.as = input.as ?? formOf(draft, input, from);
  if (spec.as === 'lines') asLines(around, input, from);
  else if (spec.as === 'jsonl') asJsonl(around, input, from);
  else asItIs(around, input, spec.as);
}

/** Lines where lines are asked for; else the one file of a parent, or a folder a task. */
function formOf(draft: StepDraft, { spec }: InputDraft, from: OutputSource): StepInputForm {
  const isTarget = draft.step.target?.some((part) => part.kind === 'in' && part.name === spec.name) ?? false;
  if (spec.pick !== null || spec.unique || isTarget) return 'lines';
  return draft.step.needs.find((need) => need.step === from.step)?.mode === 'single' ? 'file' : 'directory';
}

function asLines(around: Surroundings, { spec, pick, asPlace }: InputDraft, from: OutputSource): void {
  const name = `${from.step}.${from.output}`;
  const addRead = `add a \`read\` to \`${from.step}.outputs.${from.output}\``;
  const reader = readerOf(around.drafts, from);
  if (!isRead(around.drafts, from)) {
    if (pick !== null) around.reading.fault(pick, `\`${name}\` has no \`read\`, so it has no rows`, addRead);
    return;
  }
  checkField(around, from, pick, spec.pick);
  if (reader === 'lines') spec.pick = 'line';
  else if (pick === null && reader !== null) {
    around.reading.fault(
      asPlace,
      `a row of \`${name}\` is no line`,
      'add `pick: FIELD`, or write `as: jsonl`',
    );
  }
}

function asJsonl(around: Surroundings, { spec, pick, asPlace }: InputDraft, from: OutputSource): void {
  checkField(around, from, pick, spec.pick);
  if (!isRead(around.drafts, from))
    around.reading.fault(
      asPlace,
      `\`${from.step}.${from.output}\` has no \`read\`, so it has no rows`,
      `add a \`read\` to \`${from.step}.outputs.${from.output}\``,
    );
}

function asItIs({ reading }: Surroundings, input: InputDraft, as: StepInputSpec['as']): void {
  const hint = 'write `as: lines` or `as: jsonl`';
  for (const [name, place, written] of [
    ['pick', input.pick, input.spec.pick !== null],
    ['unique', input.unique, input.spec.unique],
  ] as const)
    if (place !== null && written)
      reading.fault(place, `\`as: ${as}\` gives files as they are: \`${name}\` has no place`, hint);
}
