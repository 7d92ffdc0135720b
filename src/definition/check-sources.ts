// Where items and input files come from: an input of the scan, or an output of a step that is needed.
import type { InputSpec, Source } from '#sonar/contracts/definition.ts';
import type { FieldReading } from './field-reading.ts';
import { meantHint } from './nearest-name.ts';
import { type ReaderEntry, readerEntry } from './reader-catalog.ts';
import type { Place } from './source-node.ts';
import type { OutputDraft, StepDraft } from './step-draft.ts';

export interface Surroundings {
  reading: FieldReading;
  inputs: Record<string, InputSpec>;
  drafts: readonly StepDraft[];
}

export type OutputSource = Extract<Source, { kind: 'output' }>;

/** `inputs.NAME` or `STEP.OUTPUT` with the step among the needs; anything else is reported. */
export function sourceOf(
  { reading, inputs, drafts }: Surroundings,
  draft: StepDraft,
  place: Place,
): Source | null {
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

const outputOf = (drafts: readonly StepDraft[], source: OutputSource): OutputDraft | undefined =>
  drafts
    .find(({ step }) => step.name === source.step)
    ?.outputs.find(({ spec }) => spec.name === source.output);

/** Whether an output has a reader; one that was written and refused counts, since it is reported there. */
export function isRead(drafts: readonly StepDraft[], source: OutputSource): boolean {
  const output = outputOf(drafts, source);
  if (output === undefined || output.spec.read !== null) return true;
  const { node } = output.entry;
  return node.kind === 'map' && node.entries.some(({ key }) => key === 'read');
}

/** The reader's name; null where there is none or it was refused. */
export const readerOf = (drafts: readonly StepDraft[], source: OutputSource): string | null =>
  outputOf(drafts, source)?.spec.read?.reader ?? null;

/** Reports a field that the rows of an output do not have; `field` may be a dotted path. */
export function checkField(
  { reading, drafts }: Surroundings,
  source: OutputSource,
  place: Place | null,
  field: string | null,
): void {
  if (place === null || field === null) return;
  const rowFields = rowFieldsOf(drafts, source);
  if (rowFields === null || Object.hasOwn(rowFields, field)) return;
  reading.fault(
    place,
    `rows of \`${source.step}.${source.output}\` have no field \`${field}\``,
    meantHint(field, Object.keys(rowFields)),
  );
}

/** The fields that rows of an output have; null where the reader does not fix them. */
export function rowFieldsOf(drafts: readonly StepDraft[], source: OutputSource): ReaderEntry['rowFields'] {
  const reader = readerOf(drafts, source);
  return reader === null ? null : (readerEntry(reader)?.rowFields ?? null);
}
