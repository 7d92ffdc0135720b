// Fields of a tool's objects, whatever their type turns out to be: tools change types between versions, and no
// surprise of theirs may cost a record.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';

/** A text that is not empty; numbers and flags as their text; null for anything else. */
export function textOf(value: JsonValue | undefined): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

/** A whole number, also written as text. */
export function numberOf(value: JsonValue | undefined): number | null {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value.trim()) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : null;
}

/** A port that can be spoken to. */
export function portOf(value: JsonValue | undefined): number | null {
  const port = numberOf(value);
  return port !== null && port >= 1 && port <= 65_535 ? port : null;
}

export function flagOf(value: JsonValue | undefined): boolean | null {
  if (value === true || value === 'true') return true;
  return value === false || value === 'false' ? false : null;
}

/** The texts of a list; one text is a list of one. Each once, in the tool's order. */
export function textsOf(value: JsonValue | undefined): string[] {
  const elements = Array.isArray(value) ? value : [value];
  return [...new Set(elements.flatMap((element) => textOf(element) ?? []))];
}

export const objectOf = (value: JsonValue | undefined): Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};

export const objectsOf = (value: JsonValue | undefined): Row[] =>
  (Array.isArray(value) ? value : [value]).filter(
    (element): element is Row => typeof element === 'object' && element !== null && !Array.isArray(element),
  );

/** Names of one dialect: older versions of several tools write dashes where newer ones write underscores. */
export const underscored = (value: Row): Row =>
  Object.fromEntries(Object.entries(value).map(([name, element]) => [name.replaceAll('-', '_'), element]));

/**
 * The row with the tool's other fields after its own. Left out are those in `spent`, which the row's own fields
 * say already, and bulk.
 */
export function withRest(row: Row, value: Row, spent: readonly string[]): Row {
  const rest = Object.entries(value).filter(
    ([name, element]) =>
      !Object.hasOwn(row, name) && !spent.includes(name) && !bulk.has(name) && element !== null,
  );
  return { ...row, ...Object.fromEntries(rest) };
}

/** Whole requests, pages and pictures: they would be carried along with every item made of the row. */
const bulk = new Set([
  'body',
  'certificate',
  'client_hello',
  'console',
  'curl_command',
  'headless_body',
  'html',
  'network',
  'raw',
  'raw_header',
  'raw_resp',
  'request',
  'response',
  'screenshot_bytes',
  'servers_hello',
  'template_encoded',
  'xhr_requests',
]);
