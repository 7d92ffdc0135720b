// Records as CSV after RFC 4180, with formulas defused.
//
// A spreadsheet runs a cell that begins with = + - @ or a tab or carriage return, quoted or not. OWASP ("CSV Injection",
// https://owasp.org/www-community/attacks/CSV_Injection; ASVS 5.0, 1.2.10) has such a cell begin with a single quote. The
// same goes for one that begins so after blanks or quotes, which some programs strip, for a line feed, and for the
// full-width signs that some locales take for the narrow ones. Numbers and flags are not texts of targets and stay.
import type { JsonValue } from '#sonar/contracts/definition.ts';

const formula = /^[\s"'\u00a0\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n\0]/u;

export const defused = (text: string): string => (formula.test(text) ? `'${text}` : text);

/** The text of a cell: lists and objects are JSON, what is not there is empty. */
export function cellText(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return defused(typeof value === 'string' ? value : JSON.stringify(value));
}

export const csvLine = (cells: readonly string[]): string =>
  `${cells.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',')}\r\n`;
