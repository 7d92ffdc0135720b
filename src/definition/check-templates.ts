// What templates refer to must exist and fit the place it is put in.
import {
  type FileSpec,
  type InputSpec,
  listInputTypes,
  type TemplatePart,
} from '#sonar/contracts/definition.ts';
import { rowFieldsOf } from './check-sources.ts';
import { meantHint } from './nearest-name.ts';
import type { ProblemList } from './problem-list.ts';
import type { PlacedTemplate, StepDraft } from './step-draft.ts';

interface Surroundings {
  problems: ProblemList;
  inputs: Record<string, InputSpec>;
  files: Record<string, FileSpec>;
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
  const { foreach, entry } = draft;
  const given = draft.templates.some(({ parts }) => parts.some(({ part }) => part.kind === 'batch'));
  if (foreach?.batch != null && !given) {
    const hint = 'write `${batch}` in the command, or `stdin: ${batch}`';
    around.problems.add(
      foreach.batch.path,
      foreach.batch.node.at,
      `\`${entry.key}\` never reads its batch`,
      hint,
    );
  }
}

function partFault(
  around: Surroundings,
  draft: StepDraft,
  template: PlacedTemplate,
  part: TemplatePart,
): Fault | null {
  const { use } = template;
  if (part.kind === 'text') return null;
  if (use === 'program') {
    return {
      message: 'the program must be a fixed text',
      hint: 'an item or an input must not choose what is run',
    };
  }
  switch (part.kind) {
    case 'item':
      return itemFault(around, draft, use, part);
    case 'inputs':
      return inputsFault(around, use, part);
    case 'in':
      return inFault(draft, template, part.name);
    case 'batch':
      if (use === 'target') return { message: 'a batch is checked item by item', hint: 'write `${item}`' };
      if (use === 'stdin' && draft.step.foreach?.batch?.as === 'directory')
        return {
          message: '`${batch}` is a directory, and no standard input',
          hint: 'write it in the command',
        };
      if (draft.step.foreach?.batch != null || draft.foreach?.batch != null) return null;
      return {
        message: '`${batch}`: the step has no batches',
        hint:
          draft.step.foreach === null ? 'add `foreach: {in: …, batch: N}`' : 'add `batch: N` to `foreach`',
      };
    case 'file': {
      if (use === 'target') return { message: 'a file of the definition is no target', hint: null };
      if (Object.hasOwn(around.files, part.name)) return null;
      const names = Object.keys(around.files);
      return {
        message: `\`\${file.${part.name}}\`: the definition has no file \`${part.name}\``,
        hint: meantHint(part.name, names) ?? `add \`files: {${part.name}: ./PATH}\` to the definition`,
      };
    }
    case 'out':
      return outFault(draft, use, part.name);
  }
}

function itemFault(
  around: Surroundings,
  draft: StepDraft,
  use: PlacedTemplate['use'],
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
  if (draft.foreach?.batch != null && use !== 'target') {
    return { message: `${written}: the items of a batch are in its file`, hint: 'write `${batch}`' };
  }
  if (foreach.pick !== null) return null;
  if (foreach.files) return fileItemFault(use, part, written);
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
  const list = foreach.group !== null && field !== foreach.group && part.join === null;
  if (
    list &&
    use !== 'target' &&
    use !== 'stdin' &&
    (rowFields === null || Object.hasOwn(rowFields, field))
  ) {
    return {
      message: `${written} is a list: all of the group \`${foreach.group}\``,
      hint: `write \`\${join(item.${field})}\``,
    };
  }
  if (rowFields === null || Object.hasOwn(rowFields, field)) return null;
  return { message: `${written}: rows have no field \`${field}\``, hint: meantHint(field, known) };
}

const fileFields = ['path', 'size', 'sha256'];

function fileItemFault(
  use: PlacedTemplate['use'],
  part: Extract<TemplatePart, { kind: 'item' }>,
  written: string,
): Fault | null {
  if (use === 'target') return { message: `${written} is a file, and no target`, hint: null };
  const [field, ...rest] = part.path;
  if (part.join !== null) return { message: `${written} is one file, not a list`, hint: 'write `${item}`' };
  if (field === undefined || (fileFields.includes(field) && rest.length === 0)) return null;
  const hint = `write \`\${item}\` for the file itself, or one of ${fileFields.map((name) => `\${item.${name}}`).join(', ')}; for its rows add a \`read\` to the output`;
  return { message: `${written}: the items are files`, hint };
}

/** A file that is a target is checked line by line, so it must be made of lines and stand alone. */
function inFault(draft: StepDraft, { use, parts }: PlacedTemplate, name: string): Fault | null {
  const input = draft.inputs.find(({ spec }) => spec.name === name);
  if (input === undefined) {
    return {
      message: `\`\${in.${name}}\`: the step has no input \`${name}\``,
      hint: meantHint(
        name,
        draft.inputs.map(({ spec }) => spec.name),
      ),
    };
  }
  if (use === 'stdin' && input.spec.as === 'directory')
    return { message: `\`\${in.${name}}\` is a directory, and no standard input`, hint: 'write `as: file`' };
  if (use !== 'target') return null;
  if (parts.length > 1)
    return { message: 'a file as `target` stands alone', hint: `write \`\${in.${name}}\`` };
  if (input.spec.as === 'lines') return null;
  return {
    message: `the file \`${name}\` is not made of lines, which are what the scope is asked about`,
    hint: `write \`as: lines\` at \`inputs.${name}\``,
  };
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
  if (spec.type === 'file') {
    return {
      message: `${written} is a file`,
      hint: `add \`inputs: {${part.name}: {from: inputs.${part.name}}}\` to the step and write \`\${in.${part.name}}\``,
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
