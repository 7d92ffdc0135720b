// The values that a template's references stand for, and which of them are refused.
import type { JsonValue, TemplatePart } from '#sonar/contracts/definition.ts';
import { valueAt } from './records-path.ts';

export interface RenderContext {
  /** Undefined: the step has no `foreach`. */
  item: JsonValue | undefined;
  /** The scan's inputs; those of list types are arrays of lines. */
  inputs: Record<string, string | string[]>;
}

export interface Refusal {
  ok: false;
  /** For people; names the place and the reference, never a whole value. */
  reason: string;
}

type Reference = Extract<TemplatePart, { kind: 'item' | 'inputs' }>;

/** `list` says whether the reference is to a list, which only `join` makes one text. */
type Values = { ok: true; name: string; list: boolean; values: string[] } | Refusal;

/** @param place what is rendered, for the reason: `argument 2`, `env TOKEN`, `stdin`, `target` */
export function valuesOf(reference: Reference, context: RenderContext, place: string): Values {
  const name = nameOf(reference);
  const value =
    reference.kind === 'item' ? valueAt(context.item, reference.path) : inputOf(reference, context);
  if (value === undefined || value === null) {
    return { ok: false, reason: `${place}: \${${name}} has no value${fieldsOf(context.item)}` };
  }
  const list = Array.isArray(value);
  const elements = list ? value : [value];
  const texts: string[] = [];
  // A text input is the operator's own and may hold lines; an item and a line of a list are one line each.
  const oneLine = reference.kind === 'item' || list;
  for (const element of elements) {
    const text = scalarText(element);
    if (text === null) {
      return { ok: false, reason: `${place}: \${${name}} is no text or number${fieldsOf(element)}` };
    }
    const fault = faultOf(text, oneLine);
    if (fault !== null) return { ok: false, reason: `${place}: \${${name}} ${fault}` };
    texts.push(text);
  }
  return { ok: true, name, list, values: texts };
}

const nameOf = (reference: Reference): string =>
  reference.kind === 'item' ? ['item', ...reference.path].join('.') : `inputs.${reference.name}`;

const inputOf = (
  { name }: Extract<Reference, { kind: 'inputs' }>,
  { inputs }: RenderContext,
): JsonValue | undefined => (Object.hasOwn(inputs, name) ? inputs[name] : undefined);

function scalarText(value: JsonValue): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

/** Why a text is not one line that may stand alone in a file or an argument, or null. */
export const lineFault = (text: string): string | null => faultOf(text, true);

function faultOf(text: string, oneLine: boolean): string | null {
  if (!text.isWellFormed()) return 'holds half a surrogate pair';
  if (text.includes('\0')) return 'holds a NUL';
  // C0, DEL, C1 and the Unicode line ends; of these a text of the operator may hold tab, LF and CR.
  const refused = oneLine
    ? /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/
    : /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;
  return refused.test(text) ? 'holds a control character or a line end' : null;
}

/** Names the fields of a row, where a row stands in the place of a text. */
function fieldsOf(value: JsonValue | undefined): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return '';
  const names = Object.keys(value)
    .slice(0, 12)
    .map((name) => name.slice(0, 40));
  return names.length === 0 ? '' : `; the row has ${names.join(', ')}`;
}
