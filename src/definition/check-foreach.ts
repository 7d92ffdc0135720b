// What `foreach` reads and what it makes of it: rows, values, groups, batches, or the files of an output.
import { type ForeachSpec, listInputTypes } from '#sonar/contracts/definition.ts';
import { checkField, isRead, type OutputSource, type Surroundings, sourceOf } from './check-sources.ts';
import type { ForeachDraft, StepDraft } from './step-draft.ts';

/** Completes `foreach` of one step. */
export function resolveForeach(around: Surroundings, draft: StepDraft): void {
  const { foreach } = draft;
  const spec = draft.step.foreach;
  if (foreach === null || spec === null) return;
  checkTogether(around, foreach, spec);
  if (foreach.in === null) return;
  const source = sourceOf(around, draft, foreach.in);
  if (source === null) return;
  spec.in = source;
  if (source.kind === 'input') overLines(around, foreach, spec, source.input);
  else if (foreach.form === 'directory' || !isRead(around.drafts, source))
    overFiles(around, foreach, spec, source);
  else overRows(around, foreach, spec, source);
}

/** What excludes what, whatever the source is. */
function checkTogether({ reading }: Surroundings, foreach: ForeachDraft, spec: ForeachSpec): void {
  if (foreach.group !== null) {
    for (const name of ['pick', 'unique', 'batch', 'split'] as const) {
      const other = foreach[name];
      const meant = name === 'unique' ? spec.unique : other !== null;
      if (other === null || !meant) continue;
      reading.fault(
        other,
        `\`${name}\` has no place beside \`group\``,
        'a group is one item: its whole rows',
      );
    }
  }
  if (
    foreach.as !== null &&
    foreach.batch === null &&
    (foreach.form === 'lines' || foreach.form === 'jsonl')
  ) {
    reading.fault(
      foreach.as,
      `\`as: ${foreach.form}\` is how a batch is written`,
      'add `batch: N`, or leave `as` out',
    );
  }
}

function overLines(
  { reading, inputs }: Surroundings,
  foreach: ForeachDraft,
  spec: ForeachSpec,
  input: string,
): void {
  const type = inputs[input]?.type ?? 'lines';
  if (!listInputTypes.includes(type) && foreach.in !== null) {
    reading.fault(
      foreach.in,
      `\`${input}\` is one ${type}, not a list`,
      `a list has the type ${listInputTypes.join(', ')}`,
    );
  }
  const hint = 'leave `pick` out';
  if (foreach.pick !== null)
    reading.fault(foreach.pick, 'the lines of an input have no fields to pick', hint);
  if (foreach.group !== null)
    reading.fault(foreach.group, 'the lines of an input have no fields to group by', 'leave `group` out');
  if (foreach.as !== null && foreach.form === 'directory')
    reading.fault(foreach.as, 'the lines of an input are no files', 'write `as: lines` or `as: jsonl`');
  if (spec.batch !== null) spec.batch.as = foreach.form ?? 'lines';
}

function overFiles(
  { reading }: Surroundings,
  foreach: ForeachDraft,
  spec: ForeachSpec,
  source: OutputSource,
): void {
  spec.files = true;
  if (spec.batch !== null) spec.batch.as = 'directory';
  const name = `${source.step}.${source.output}`;
  const hint =
    foreach.form === 'directory'
      ? 'leave `as` out to read its rows'
      : `add \`read: lines\` or another reader to \`${source.step}.outputs.${source.output}\``;
  for (const field of ['pick', 'group', 'split'] as const) {
    const place = foreach[field];
    if (place !== null)
      reading.fault(place, `the items are the files of \`${name}\`: \`${field}\` has no place`, hint);
  }
  if (foreach.as !== null && foreach.form !== 'directory')
    reading.fault(foreach.as, `\`${name}\` has no \`read\`, so it has no rows`, hint);
}

function overRows(
  around: Surroundings,
  foreach: ForeachDraft,
  spec: ForeachSpec,
  source: OutputSource,
): void {
  const { reading } = around;
  checkField(around, source, foreach.pick, spec.pick);
  if (foreach.group !== null && spec.group?.includes('.') === true)
    reading.fault(
      foreach.group,
      'a group is by one field of the row, not by a path',
      'write the name of the field',
    );
  else checkField(around, source, foreach.group, spec.group);
  if (foreach.split !== null && foreach.pick === null && foreach.group === null)
    reading.fault(foreach.split, 'a row is no network', 'add `pick: FIELD`');
  if (spec.batch === null) return;
  spec.batch.as = foreach.form ?? (foreach.pick === null ? 'jsonl' : 'lines');
  if (spec.batch.as === 'lines' && foreach.pick === null && foreach.as !== null)
    reading.fault(foreach.as, 'a row is no line', 'add `pick: FIELD`, or write `as: jsonl`');
}
