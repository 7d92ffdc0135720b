// Strings from targets are hostile: a title or a banner may hold escape sequences that move the cursor,
// rename the window or reverse the text. Nothing reaches a terminal without passing through here.

const escape = String.fromCharCode(0x1b);
const bell = String.fromCharCode(0x07);
const csi = String.fromCharCode(0x9b);
const stringEnd = String.fromCharCode(0x9c);

/** CSI sequences; OSC, DCS, SOS, PM and APC with their text; then two-character escapes and what is left over. */
const sequences = new RegExp(
  [
    `(?:${escape}\\[|${csi})[0-?]*[ -/]*[@-~]?`,
    `${escape}[\\]PX^_][^${bell}${escape}${stringEnd}]*(?:${bell}|${stringEnd}|${escape}\\\\)`,
    `${escape}[ -/]*[0-~]?`,
  ].join('|'),
  'g',
);
const blank = /[\t\n\r\v\f\u2028\u2029]+/g;
/** Controls, and format characters: they have no width and turn the direction of what follows. */
const unprintable = /[\p{Cc}\p{Cf}]/gu;
const loneSurrogate = /\p{Cs}/gu;
const ascii = /^[ -~]*$/;
const wide =
  /(?!\p{Regional_Indicator})\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;
const zeroWidth = /^[\p{Mn}\p{Me}]$/u;

/** Longer text is cut before it is looked at: a cell never shows as much, and a value may be megabytes. */
const examinedLength = 4096;

/** One printable line: no control characters, no escape sequences, blanks for line ends and tabs. */
export function safeText(text: string): string {
  const head = text.length > examinedLength ? `${text.slice(0, examinedLength)}…` : text;
  if (ascii.test(head)) return head;
  return head
    .replace(sequences, '')
    .replace(blank, ' ')
    .replace(unprintable, '')
    .replace(loneSurrogate, '\ufffd');
}

/** What JSON leaves as it is and a terminal obeys: C1 controls, and what turns or breaks lines. */
const unescapedByJson = /[\u007f-\u009f\u2028\u2029\p{Cf}]/gu;

/** JSON whose text does nothing to a terminal; the value is the same. */
export function safeJson(value: unknown, indent: number): string {
  return JSON.stringify(value, null, indent).replace(unescapedByJson, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** Columns of one character, as terminals count: each for itself, so that widths of parts add up. */
function characterWidth(character: string): number {
  if (zeroWidth.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Columns of a terminal that safe text takes. */
export function displayWidth(text: string): number {
  if (ascii.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Cuts safe text to `width` columns; what was cut shows as an ellipsis. */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  if (width <= 0) return '';
  let kept = '';
  let used = 0;
  for (const character of text) {
    used += characterWidth(character);
    if (used > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Fills safe text up with blanks to `width` columns; longer text is cut. */
export function pad(text: string, width: number, align: 'left' | 'right'): string {
  const cut = truncate(text, width);
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(cut)));
  return align === 'left' ? cut + blanks : blanks + cut;
}
