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
 * What a target wrote may be all brackets: the beginning is walked by index, each character a few times, and no pattern
 * is tried on it.
 * @param start the file's first bytes; all of it where `complete`
 * @param wrapper the key under which an object may hold the array of objects, or null
 */
export function jsonFormOf(start: Buffer, complete: boolean, wrapper: string | null): JsonForm {
  // One character a byte: positions are byte offsets, and JSON's own characters are the same.
  const text = start.toString('latin1');
  const brackets = bracketsOf(text);
  let from = text.startsWith('\u00ef\u00bb\u00bf') ? 3 : 0;
  while (from < text.length) {
    const end = text.indexOf('\n', from);
    const line = text.slice(from, end === -1 ? text.length : end).trim();
    const whole = end !== -1 || complete;
    // A bracket may also begin a line of a log: `[INF] …`.
    const verdict = line.startsWith('[')
      ? brackets.openObjects(from)
        ? 'scan'
        : 'next'
      : verdictOf(line, whole, wrapper);
    if (verdict === 'lines') return { kind: 'lines' };
    if (verdict === 'scan') return { kind: 'scan', from, oneLine: hasWholeLine(text, from) };
    if (end === -1) break;
    from = end + 1;
  }
  return { kind: 'lines' };
}

/** Whether the brackets from a place on, over any number of lines, are followed by an object, a `]` or nothing. */
function bracketsOf(text: string): { openObjects(from: number): boolean } {
  // From anywhere in a run of brackets the walk ends where it ended before.
  let walkedTo = 0;
  return {
    openObjects(from) {
      walkedTo = skipped(text, Math.max(from, walkedTo), text.length, '[');
      const next = text[walkedTo];
      return next === undefined || next === '{' || next === ']';
    },
  };
}

function verdictOf(line: string, whole: boolean, wrapper: string | null): 'lines' | 'scan' | 'next' {
  if (!line.startsWith('{')) return 'next';
  if (!whole) return wrapper === null ? 'lines' : 'scan';
  const value = objectOf(line);
  if (value !== null) return wrapper !== null && Array.isArray(value[wrapper]) ? 'scan' : 'lines';
  const last = line.at(-1) ?? '';
  return (last === ',' && objectOf(line.slice(0, -1)) !== null) || '{[,:'.includes(last) ? 'scan' : 'next';
}

/** Whether an object stands alone on a line, among commas and the array's brackets. */
function hasWholeLine(text: string, start: number): boolean {
  for (let from = start; from < text.length; ) {
    const newline = text.indexOf('\n', from);
    const end = newline === -1 ? text.length : newline;
    const first = skipped(text, from, end, '[,');
    if (text[first] === '{') {
      const past = skippedBack(text, first, end, '],');
      if (objectOf(text.slice(first, past)) !== null) return true;
    }
    from = end + 1;
  }
  return false;
}

const isSkipped = (character: string, others: string): boolean =>
  others.includes(character) || character.trim() === '';

/** The first place at or after `from` that holds neither a blank nor one of `others`. */
function skipped(text: string, from: number, to: number, others: string): number {
  let at = from;
  while (at < to && isSkipped(text.charAt(at), others)) at += 1;
  return at;
}

/** The place after the last character before `to` that is neither a blank nor one of `others`. */
function skippedBack(text: string, from: number, to: number, others: string): number {
  let at = to;
  while (at > from && isSkipped(text.charAt(at - 1), others)) at -= 1;
  return at;
}

function objectOf(text: string): Record<string, unknown> | null {
  if (!text.startsWith('{') || !text.endsWith('}')) return null;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}
