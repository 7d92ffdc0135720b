// What templates refer to must exist and fit the place it is put in.
import { type InputSpec, listInputTypes, type TemplatePart } from '#sonar/contracts/definition.ts';
import { rowFieldsOf } from './check-sources.ts';
import { meantHint } from './nearest-name.ts';
import type { ProblemList } from './problem-list.ts';
import type { PlacedTemplate, StepDraft } from './step-draft.ts';

interface Surroundings {
  problems: ProblemList;
  inputs: Record<string, InputSpec>;
  drafts: readonly StepDraft[];
}
type Fault = { message: string; hint: string | null };

/** Checks every template of one step whose sources are resolved. */
export function checkTemplates(around: Surroundings, draft: StepDraft): void {
  for (const template of draft.templates) {
    for (const { part, at } of template.parts) {
      const fault = partFault(around, draft, template, part);
      if (fault !== null) around.problems.add(template.path, at, fault.message, fault.hint);
    }
    const option = optionFault(draft, template);
    if (option !== null) around.problems.add(template.path, option.at, option.message, option.hint);
  }
}

function partFault(
  around: Surroundings,
  draft: StepDraft,
  { use }: PlacedTemplate,
  part: TemplatePart,
): Fault | null {
  if (part.kind === 'text') return null;
  if (use === 'program') {
    return {
      message: 'the program must be a fixed text',
      hint: 'an item or an input must not choose what is run',
    };
  }
  switch (part.kind) {
    case 'item':
      return itemFault(around, draft, part);
    case 'inputs':
      return inputsFault(around, use, part);
    case 'in': {
      if (use === 'target') {
        return {
          message: 'a file as `target` is not read by this version of Sonar',
          hint: 'write `${item}` or `${item.FIELD}`',
        };
      }
      const names = draft.inputs.map(({ spec }) => spec.name);
      if (names.includes(part.name)) return null;
      return {
        message: `\`\${in.${part.name}}\`: the step has no input \`${part.name}\``,
        hint: meantHint(part.name, names),
      };
    }
    case 'out':
      return outFault(draft, use, part.name);
  }
}

function itemFault(
  around: Surroundings,
  draft: StepDraft,
  part: Extract<TemplatePart, { kind: 'item' }>,
): Fault | null {
  const { foreach } = draft.step;
  const written = `\`\${${['item', ...part.path].join('.')}}\``;
  if (foreach === null) {
    return {
      message: `${written}: the step has no \`foreach\``,
      hint: 'add `foreach: {in: inputs.NAME}` or `{in: STEP.OUTPUT}`',
    };
  }
  const [field] = part.path;
  if (foreach.pick !== null) return null;
  if (foreach.in.kind === 'input') {
    // An unresolved source is reported where it stands.
    if (field === undefined || foreach.in.input === '') return null;
    return { message: `${written}: the lines of an input have no fields`, hint: 'write `${item}`' };
  }
  const rowFields = rowFieldsOf(around.drafts, foreach.in);
  const known = rowFields === null ? [] : Object.keys(rowFields);
  if (field === undefined) {
    const hint =
      known.length === 0
        ? 'write `${item.FIELD}`'
        : `write one of ${known.map((name) => `\${item.${name}}`).join(', ')}`;
    return { message: `${written} is a whole row`, hint: `${hint}, or \`pick\` a field` };
  }
  if (rowFields === null || Object.hasOwn(rowFields, field)) return null;
  return { message: `${written}: rows have no field \`${field}\``, hint: meantHint(field, known) };
}

function inputsFault(
  { inputs }: Surroundings,
  use: PlacedTemplate['use'],
  part: Extract<TemplatePart, { kind: 'inputs' }>,
): Fault | null {
  const written = `\`\${inputs.${part.name}}\``;
  const spec = Object.hasOwn(inputs, part.name) ? inputs[part.name] : undefined;
  if (spec === undefined) {
    return {
      message: `${written}: there is no input \`${part.name}\``,
      hint: meantHint(part.name, Object.keys(inputs)),
    };
  }
  const list = listInputTypes.includes(spec.type);
  if (!list || part.join !== null || use === 'stdin' || use === 'target') return null;
  return {
    message: `${written} is a list, and this is one argument`,
    hint: `write \`\${join(inputs.${part.name})}\`, or \`foreach: {in: inputs.${part.name}}\``,
  };
}

function outFault(draft: StepDraft, use: PlacedTemplate['use'], name: string): Fault | null {
  if (use === 'target') return { message: 'an output is no target', hint: null };
  const output = draft.outputs.find(({ spec }) => spec.name === name)?.spec;
  if (output === undefined) {
    const names = draft.outputs.map(({ spec }) => spec.name);
    const hint = meantHint(name, names) ?? `add \`outputs: {${name}: {path: FILE}}\``;
    return { message: `\`\${out.${name}}\`: the step has no output \`${name}\``, hint };
  }
  if (output.path !== null) return null;
  return { message: `\`\${out.${name}}\` is the standard output and has no path`, hint: null };
}

/** `-${item}` and `--${item}` would let the item choose the option; `-p${item}` and `--host=${item}` do not. */
function optionFault(draft: StepDraft, { use, parts }: PlacedTemplate): (Fault & { at: number }) | null {
  const [first, second] = parts;
  if (use !== 'argument' || draft.step.allowOptionItems || first?.part.kind !== 'text') return null;
  if (!/^-+$/.test(first.part.text) || (second?.part.kind !== 'item' && second?.part.kind !== 'inputs'))
    return null;
  return {
    at: first.at,
    message: 'an item must not choose the option',
    hint: 'write the option out, or set `allowOptionItems: true`',
  };
}
