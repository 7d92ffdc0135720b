// The values that a scan gives its definition's inputs.
import {
  type Definition,
  type InputSpec,
  type InputType,
  listInputTypes,
} from '#sonar/contracts/definition.ts';
import { meantHint } from './nearest-name.ts';

export interface InputProblem {
  input: string;
  message: string;
  hint: string | null;
}

/** What a scan starter may give: a text, the lines of a list, or JSON's own number and boolean. */
export type GivenInput = string | number | boolean | readonly string[] | StoredInput;

/** A file that was stored before: an input of type `file`, or the lines of a list. */
export interface StoredInput {
  sha256: string;
}

/** Lines without their ends; blank ones are dropped, blanks around a line too. */
const linesOf = (text: string): string[] =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');

const isList = (type: InputType): boolean => listInputTypes.includes(type);

/** Why a text is no value of the type, or null. Items of lists are checked by the scope, one by one. */
export function inputFault(type: InputType, text: string): string | null {
  if (!text.isWellFormed() || text.includes('\0')) return 'holds a NUL or half a surrogate pair';
  if (type === 'number' && !/^-?(0|[1-9]\d{0,15})(\.\d{1,15})?$/.test(text))
    return `is no number: \`${text.slice(0, 80)}\``;
  if (type === 'flag' && text !== 'true' && text !== 'false')
    return `is neither true nor false: \`${text.slice(0, 80)}\``;
  return null;
}

/**
 * The definition's inputs with their values: lists as lines, everything else as text; an input that is neither
 * given nor has a default is an empty list or an empty text.
 */
export function resolveInputs(
  definition: Pick<Definition, 'inputs'>,
  given: Readonly<Record<string, GivenInput>>,
):
  | { ok: true; inputs: Record<string, string | string[] | StoredInput> }
  | { ok: false; problems: InputProblem[] } {
  const problems: InputProblem[] = [];
  const names = Object.keys(definition.inputs);
  for (const input of Object.keys(given)) {
    if (names.includes(input)) continue;
    problems.push({ input, message: `there is no input \`${input}\``, hint: meantHint(input, names) });
  }
  const inputs: Record<string, string | string[] | StoredInput> = {};
  for (const [input, spec] of Object.entries(definition.inputs)) {
    const value = resolve(spec, Object.hasOwn(given, input) ? given[input] : undefined);
    if (typeof value === 'string' || Array.isArray(value) || 'sha256' in value) inputs[input] = value;
    else problems.push({ input, message: `the input \`${input}\` ${value.fault}`, hint: spec.help });
  }
  return problems.length === 0 ? { ok: true, inputs } : { ok: false, problems };
}

function resolve(
  spec: InputSpec,
  given: GivenInput | undefined,
): string | string[] | StoredInput | { fault: string } {
  if (given === undefined && spec.required) return { fault: 'is required' };
  const value = given ?? spec.default ?? '';
  if (typeof value === 'object' && 'sha256' in value)
    return spec.type === 'file' || isList(spec.type)
      ? value
      : { fault: `is of type ${spec.type}, which takes no stored file` };
  if (typeof value === 'object' && !isList(spec.type)) return { fault: `is one ${spec.type}, not a list` };
  const text = typeof value === 'object' ? value.join('\n') : String(value);
  // A list without lines is a value: its steps come to a no-work result.
  if (spec.required && !isList(spec.type) && text.trim() === '') return { fault: 'is required, but empty' };
  const unset = given === undefined && spec.default === null;
  const fault = unset ? null : inputFault(spec.type, text);
  if (fault !== null) return { fault };
  return isList(spec.type) ? linesOf(text) : text;
}
