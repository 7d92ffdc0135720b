// Where items and input files come from: an input of the scan, or an output of a step that is needed.
import { type InputSpec, listInputTypes, type Source } from '#sonar/contracts/definition.ts';
import type { FieldReading } from './field-reading.ts';
import { meantHint } from './nearest-name.ts';
import { type ReaderEntry, readerEntry } from './reader-catalog.ts';
import type { Place } from './source-node.ts';
import type { OutputDraft, StepDraft } from './step-draft.ts';

interface Surroundings {
  reading: FieldReading;
  inputs: Record<string, InputSpec>;
  drafts: readonly StepDraft[];
}

/** Completes `foreach.in`, `inputs[].from` and `inputs[].as` of one step. */
export function resolveSources(around: Surroundings, draft: StepDraft): void {
  const { step, foreach } = draft;
  if (foreach !== null && step.foreach !== null && foreach.in !== null) {
    const source = sourceOf(around, draft, foreach.in);
    if (source !== null) step.foreach.in = source;
    if (source !== null) checkItems(around, draft, source, foreach.in, foreach.pick);
  }
  for (const input of draft.inputs) {
    const from = input.from === null ? null : sourceOf(around, draft, input.from);
    if (from === null || input.from === null) continue;
    if (from.kind === 'input') {
      around.reading.fault(
        input.from,
        'a file of an input is not read by this version of Sonar',
        'use `${inputs.NAME}` or `foreach`',
      );
      continue;
    }
    input.spec.from = { step: from.step, output: from.output };
    const mode = step.needs.find((need) => need.step === from.step)?.mode;
    input.spec.as = input.as ?? (mode === 'single' ? 'file' : 'directory');
    if (mode === 'all' && input.as === 'file') {
      around.reading.fault(
        input.entry,
        '`as: file` of a step that is needed by `all` is not read by this version of Sonar',
        'write `as: directory`',
      );
    }
  }
}

/** `inputs.NAME` or `STEP.OUTPUT` with the step among the needs; anything else is reported. */
function sourceOf({ reading, inputs, drafts }: Surroundings, draft: StepDraft, place: Place): Source | null {
  const text = reading.text(place);
  if (text === null) return null;
  const [first = '', second, ...rest] = text.split('.');
  if (second === undefined || rest.length > 0) {
    return reading.fault(place, `\`${text}\` is no source`, 'write `inputs.NAME` or `STEP.OUTPUT`');
  }
  if (first === 'inputs') {
    if (Object.hasOwn(inputs, second)) return { kind: 'input', input: second };
    return reading.fault(place, `there is no input \`${second}\``, meantHint(second, Object.keys(inputs)));
  }
  const upstream = drafts.find(({ step }) => step.name === first);
  if (upstream === undefined) {
    return reading.fault(
      place,
      `there is no step \`${first}\``,
      meantHint(
        first,
        drafts.map(({ step }) => step.name),
      ),
    );
  }
  if (!draft.needs.some(({ key }) => key === first)) {
    return reading.fault(
      place,
      `\`${first}\` is not among the needs of \`${draft.step.name}\``,
      `add \`needs: {${first}: single}\` or \`all\``,
    );
  }
  const outputs = upstream.outputs.map(({ spec }) => spec.name);
  if (outputs.includes(second)) return { kind: 'output', step: first, output: second };
  return reading.fault(
    place,
    `the step \`${first}\` has no output \`${second}\``,
    meantHint(second, outputs),
  );
}

function checkItems(
  around: Surroundings,
  draft: StepDraft,
  source: Source,
  place: Place,
  pick: Place | null,
): void {
  const { reading, inputs } = around;
  if (source.kind === 'input') {
    const type = inputs[source.input]?.type ?? 'lines';
    if (!listInputTypes.includes(type)) {
      reading.fault(
        place,
        `\`${source.input}\` is one ${type}, not a list`,
        `a list has the type ${listInputTypes.join(', ')}`,
      );
    }
    if (pick !== null)
      reading.fault(pick, 'the lines of an input have no fields to pick', 'leave `pick` out');
    return;
  }
  const output = outputOf(around.drafts, source);
  // An output whose reader was refused is reported there.
  if (output !== undefined && output.spec.read === null && !readIsWritten(output)) {
    const hint = `add \`read: lines\` or another reader to \`${source.step}.outputs.${source.output}\``;
    reading.fault(place, `\`${source.step}.${source.output}\` has no \`read\`, so it has no rows`, hint);
  }
  const rowFields = rowFieldsOf(around.drafts, source);
  const picked = draft.step.foreach?.pick ?? null;
  if (pick !== null && picked !== null && rowFields !== null && !Object.hasOwn(rowFields, picked)) {
    reading.fault(
      pick,
      `rows of \`${source.step}.${source.output}\` have no field \`${picked}\``,
      meantHint(picked, Object.keys(rowFields)),
    );
  }
}

const outputOf = (
  drafts: readonly StepDraft[],
  source: Extract<Source, { kind: 'output' }>,
): OutputDraft | undefined =>
  drafts
    .find(({ step }) => step.name === source.step)
    ?.outputs.find(({ spec }) => spec.name === source.output);

const readIsWritten = ({ entry }: OutputDraft): boolean =>
  entry.node.kind === 'map' && entry.node.entries.some(({ key }) => key === 'read');

/** The fields that rows of an output have; null where the reader does not fix them. */
export function rowFieldsOf(
  drafts: readonly StepDraft[],
  source: Extract<Source, { kind: 'output' }>,
): ReaderEntry['rowFields'] {
  const reader = outputOf(drafts, source)?.spec.read?.reader;
  return reader === undefined ? null : (readerEntry(reader)?.rowFields ?? null);
}
