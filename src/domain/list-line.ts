// One value as one line of a file: nothing in it can become a second line.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { lineFault } from './render-values.ts';

export type LineResult = { ok: true; line: string } | { ok: false; reason: string };

/** JSON leaves these raw, and some readers of lines take them for line ends. */
const otherLineEnds = /[\u007f-\u009f\u2028\u2029]/g;
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The line without its end, or why the value is none. */
export function lineOf(form: 'lines' | 'jsonl', value: JsonValue): LineResult {
  if (form === 'jsonl') return { ok: true, line: JSON.stringify(value).replaceAll(otherLineEnds, escaped) };
  if (typeof value === 'object' && value !== null)
    return { ok: false, reason: 'a value is no text or number' };
  const line = String(value);
  const fault = lineFault(line);
  return fault === null ? { ok: true, line } : { ok: false, reason: `a value ${fault}` };
}
