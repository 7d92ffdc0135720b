// Values from targets are hostile. This makes them storable: PostgreSQL's jsonb refuses NUL and lone
// surrogates, and one huge or deeply nested value must not swell every row that carries it.
import type { JsonValue } from '#sonar/contracts/definition.ts';

/** Characters (UTF-16 units) a stored string keeps; the rest is cut and the cut is marked. */
export const maxStringLength = 65_536;
/** Elements of one array or fields of one object that are kept. */
const maxElements = 1_000;
/** Nesting that is kept; whatever lies deeper is replaced by a mark. Also bounds recursion. */
const maxDepth = 12;

const cutMark = '…[cut]';
const tooDeepMark = '[nested too deeply]';

/** Replaces NUL and lone surrogates by U+FFFD and cuts at `limit` UTF-16 units, marking the cut. */
export function storableText(text: string, limit = maxStringLength): string {
  const cut = text.length > limit ? text.slice(0, limit - cutMark.length) + cutMark : text;
  return cut.toWellFormed().replaceAll('\0', '\uFFFD');
}

/** The same value with every string and key storable, and size and depth bounded. */
export function storableJson(value: JsonValue, depth = 0): JsonValue {
  if (typeof value === 'string') return storableText(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (value === null || typeof value === 'boolean') return value;
  if (depth >= maxDepth) return tooDeepMark;
  if (Array.isArray(value)) {
    return value.slice(0, maxElements).map((element) => storableJson(element, depth + 1));
  }
  return storableObject(value, maxElements, depth);
}

/** `storableJson` of an object. `fromEntries` defines own properties, so a `__proto__` key stays data. */
export function storableObject(
  value: { [key: string]: JsonValue },
  maxFields = maxElements,
  depth = 0,
): { [key: string]: JsonValue } {
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, maxFields)
      .map(([key, element]) => [storableText(key, 128), storableJson(element, depth + 1)]),
  );
}

/** At most 200 characters that are safe to print: control characters and lone surrogates are replaced. */
export function safeSample(text: string): string {
  const flat = text
    .slice(0, 200)
    .toWellFormed()
    .replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '\uFFFD');
  return text.length > 200 ? `${flat.slice(0, 199)}…` : flat;
}
