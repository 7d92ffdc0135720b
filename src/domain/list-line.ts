// One value as one line of a file: nothing in it can become a second line.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { lineFault } from './render-values.ts';

export type LineResult = { ok: true; line: string } | { ok: false; reason: string };

/** The line without its end, or why the value is none. JSON has no raw line ends. */
export function lineOf(form: 'lines' | 'jsonl', value: JsonValue): LineResult {
  if (form === 'jsonl') return { ok: true, line: JSON.stringify(value) };
  if (typeof value === 'object' && value !== null)
    return { ok: false, reason: 'a value is no text or number' };
  const line = String(value);
  const fault = lineFault(line);
  return fault === null ? { ok: true, line } : { ok: false, reason: `a value ${fault}` };
}
