// Which form of JSON a file has, by its beginning: tools write the same objects one a line, in an array, or printed
// over many lines, and some print a banner first.

/** Bytes of the beginning that are looked at. */
export const formBytes = 65_536;

export type JsonForm =
  /** One object a line; every other line stands for itself. */
  | { kind: 'lines' }
  /** Objects among brackets and commas, from this byte on. */
  | { kind: 'scan'; from: number; oneLine: boolean };

/**
 * @param start the file's first bytes; all of it where `complete`
 * @param wrapper the key under which an object may hold the array of objects, or null
 */
export function jsonFormOf(start: Buffer, complete: boolean, wrapper: string | null): JsonForm {
  // One character a byte: positions are byte offsets, and JSON's own characters are the same.
  const text = start.toString('latin1');
  let from = text.startsWith('\u00ef\u00bb\u00bf') ? 3 : 0;
  while (from < text.length) {
    const end = text.indexOf('\n', from);
    const line = text.slice(from, end === -1 ? text.length : end).trim();
    const whole = end !== -1 || complete;
    const verdict = line === '' ? 'next' : verdictOf(line, whole, text.slice(from), wrapper);
    if (verdict === 'lines') return { kind: 'lines' };
    if (verdict === 'scan') return { kind: 'scan', from, oneLine: hasWholeLine(text.slice(from)) };
    if (end === -1) break;
    from = end + 1;
  }
  return { kind: 'lines' };
}

function verdictOf(
  line: string,
  whole: boolean,
  rest: string,
  wrapper: string | null,
): 'lines' | 'scan' | 'next' {
  // A bracket may also begin a line of a log: `[INF] …`.
  if (line.startsWith('[')) return /^[[\s]*(\{|\]|$)/.test(rest) ? 'scan' : 'next';
  if (!line.startsWith('{')) return 'next';
  if (!whole) return wrapper === null ? 'lines' : 'scan';
  const value = objectOf(line);
  if (value !== null) return wrapper !== null && Array.isArray(value[wrapper]) ? 'scan' : 'lines';
  return objectOf(line.replace(/,$/, '')) !== null || /[{[,:]$/.test(line) ? 'scan' : 'next';
}

/** Whether an object stands alone on a line, among commas and the array's brackets. */
const hasWholeLine = (text: string): boolean =>
  text.split('\n').some((line) => {
    const bare = line.replace(/^[[,\s]+/, '').replace(/[\],\s]+$/, '');
    return objectOf(bare) !== null || objectOf(line.trim().replace(/,$/, '')) !== null;
  });

function objectOf(text: string): Record<string, unknown> | null {
  if (!text.startsWith('{')) return null;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}
