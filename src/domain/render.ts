// Rendering at placement: a step's templates and one item become an argument list. One template is always
// one argument. Nothing an item holds can become an option, a further argument or a part of another one.
import type { Step, Template } from '#sonar/contracts/definition.ts';
import { batchInput, fileInput, itemInput } from '#sonar/contracts/names.ts';
import type { RenderedArgument, RenderedCommand } from '#sonar/contracts/rendered-command.ts';
import { safeSample } from './records-storable.ts';
import { type Refusal, type RenderContext, valuesOf } from './render-values.ts';

/** UTF-8 bytes of one argument; Linux refuses 128 KiB and more (MAX_ARG_STRLEN, with the closing NUL). */
export const maxArgumentBytes = 128 * 1024 - 1;
/** UTF-8 bytes of `stdin` as rendered into the dispatch. */
const maxStdinBytes = 1024 * 1024;

export type RenderResult = ({ ok: true } & RenderedCommand) | Refusal;

/** An argument for people. */
const shown = (argument: RenderedArgument): string =>
  safeSample(argument.map((part) => (part.kind === 'text' ? part.text : `<${part.name}>`)).join(''));

/** The command of one item, or why the item is refused. `in` and `out` stay for the worker to fill. */
export function renderCommand(step: Step, context: RenderContext): RenderResult {
  const command: RenderedArgument[] = [];
  for (const [index, template] of step.command.entries()) {
    const place = `argument ${index}`;
    const rendered = renderTemplate(step, template, context, place, maxArgumentBytes);
    if (!rendered.ok) return rendered;
    if (!step.allowOptionItems && becomesOption(template, rendered.argument)) {
      return {
        ok: false,
        reason: `${place} would start with "-" because of its item, and be read as an option: ${shown(rendered.argument)}`,
      };
    }
    command.push(rendered.argument);
  }
  const env: Record<string, RenderedArgument> = {};
  for (const [name, template] of Object.entries(step.env)) {
    const rendered = renderTemplate(step, template, context, `env ${name}`, maxArgumentBytes);
    if (!rendered.ok) return rendered;
    env[name] = rendered.argument;
  }
  if (step.stdin === null) return { ok: true, command, stdin: null, env };
  const stdin = renderTemplate(step, step.stdin, context, 'stdin', maxStdinBytes);
  return stdin.ok ? { ok: true, command, stdin: stdin.argument, env } : stdin;
}

/**
 * What of an item is checked against the scope: every value of the step's `target`, none where it declares
 * none, and none where it is a file, whose lines are checked when it is made. A target that is one reference to
 * a list gives one target an element.
 */
export function renderTarget(step: Step, context: RenderContext): { ok: true; targets: string[] } | Refusal {
  const { target } = step;
  if (target === null) return { ok: true, targets: [] };
  const [only] = target;
  if (target.length === 1 && only !== undefined && (only.kind === 'item' || only.kind === 'inputs')) {
    const values = valuesOf(only, context, 'target');
    return values.ok ? { ok: true, targets: values.values } : values;
  }
  if (only?.kind === 'in') return { ok: true, targets: [] };
  const rendered = renderTemplate(step, target, context, 'target', maxArgumentBytes);
  if (!rendered.ok) return rendered;
  const parts = rendered.argument.map((part) => (part.kind === 'text' ? part.text : null));
  if (parts.includes(null)) return { ok: false, reason: 'target names a file' };
  return { ok: true, targets: [parts.join('')] };
}

/**
 * True when the leading "-" is not the author's, or the author wrote nothing but dashes before the value:
 * `-${item}` would let the item choose the option.
 */
function becomesOption(template: Template, argument: RenderedArgument): boolean {
  const [first] = argument;
  if (first?.kind !== 'text' || !first.text.startsWith('-')) return false;
  const firstValue = template.findIndex(({ kind }) => kind === 'item' || kind === 'inputs');
  if (firstValue === -1) return false;
  const written = template.slice(0, firstValue);
  // A path before the value is absolute: the dash is then the author's or not first.
  const author = written.map((part) => (part.kind === 'text' ? part.text : '/')).join('');
  return /^-*$/.test(author);
}

function renderTemplate(
  step: Pick<Step, 'foreach'>,
  template: Template,
  context: RenderContext,
  place: string,
  maxBytes: number,
): { ok: true; argument: RenderedArgument } | Refusal {
  const argument: RenderedArgument = [];
  let bytes = 0;
  const append = (text: string): void => {
    bytes += Buffer.byteLength(text);
    const last = argument.at(-1);
    if (last?.kind === 'text') last.text += text;
    else if (text !== '') argument.push({ kind: 'text', text });
  };
  for (const part of template) {
    if (part.kind === 'text') append(part.text);
    else if (part.kind === 'out') argument.push({ kind: 'out', name: part.name });
    else if (part.kind !== 'item' && part.kind !== 'inputs')
      argument.push({ kind: 'in', name: inputOfPart(part) });
    else if (part.kind === 'item' && part.path.length === 0 && step.foreach?.files === true)
      argument.push({ kind: 'in', name: itemInput });
    else {
      const text = textOf(part, context, place);
      if (!text.ok) return text;
      append(text.text);
    }
    if (bytes > maxBytes) return { ok: false, reason: `${place} is longer than ${maxBytes} bytes` };
  }
  return { ok: true, argument };
}

/** The input whose path on the worker stands for the part. */
function inputOfPart(part: Extract<Template[number], { kind: 'in' | 'batch' | 'file' }>): string {
  switch (part.kind) {
    case 'in':
      return part.name;
    case 'batch':
      return batchInput;
    case 'file':
      return fileInput(part.name);
    default:
      return part satisfies never;
  }
}

function textOf(
  part: Extract<Template[number], { kind: 'item' | 'inputs' }>,
  context: RenderContext,
  place: string,
): { ok: true; text: string } | Refusal {
  const values = valuesOf(part, context, place);
  if (!values.ok) return values;
  if (!values.list) return { ok: true, text: values.values[0] ?? '' };
  // A list of lines needs no separator where lines are what is read.
  const separator = part.join ?? (place === 'stdin' ? '\n' : null);
  if (separator === null)
    return { ok: false, reason: `${place}: \${${values.name}} is a list; write \${join(${values.name})}` };
  // A line of an input is its operator's own; what was found in a target must not make two elements of one.
  const split =
    part.kind === 'item' && separator !== '' && values.values.some((value) => value.includes(separator));
  return split
    ? {
        ok: false,
        reason: `${place}: an element of \${${values.name}} holds the separator ${JSON.stringify(separator)}`,
      }
    : { ok: true, text: values.values.join(separator) };
}
