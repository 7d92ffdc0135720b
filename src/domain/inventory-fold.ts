// The inventory as a pure fold: a record's state is a function of the set of its observations, whatever
// the order they are merged in and however often. No clock: every time comes from an observation.
import type { JsonValue } from '#sonar/contracts/definition.ts';

export interface Observation {
  /** Made by `orderKeyOf`; compared as text by UTF-16 units (in SQL: COLLATE "C"). */
  orderKey: string;
  /** ISO 8601 UTC in one fixed width, so that text order is time order. */
  observedAt: string;
  fields: Record<string, JsonValue>;
  sets: Record<string, string[]>;
  /** From the output of a command that failed or timed out. */
  partial: boolean;
}

export interface RecordState {
  /** Each field's value with the order key of the observation that gave it. */
  fields: Record<string, { value: JsonValue; by: string }>;
  sets: Record<string, string[]>;
  firstSeenAt: string;
  lastSeenAt: string;
  /** True while every observation so far was partial. */
  partial: boolean;
}

/** Values a set keeps: the smallest ones, since "the first ones seen" would depend on the order. */
export const maxSetValues = 64;

/** What one observation says by itself. Null says that the observer does not know: it neither sets nor clears a field. */
function stateOf({ orderKey, observedAt, fields, sets, partial }: Observation): RecordState {
  const known = Object.entries(fields).filter(([, value]) => value !== null);
  return {
    fields: Object.fromEntries(known.map(([name, value]) => [name, { value, by: orderKey }])),
    sets: Object.fromEntries(Object.entries(sets).map(([name, values]) => [name, smallest(values)])),
    firstSeenAt: observedAt,
    lastSeenAt: observedAt,
    partial,
  };
}

export const mergeObservation = (state: RecordState | null, observation: Observation): RecordState =>
  mergeStates(state, stateOf(observation));

/**
 * A field keeps the value with the greatest order key; equal keys (a replay) are decided by canonical JSON. The merge of
 * two folds is the fold of all their observations.
 */
export function mergeStates(state: RecordState | null, other: RecordState): RecordState {
  if (state === null) return other;
  const fields = new Map(Object.entries(state.fields));
  for (const [name, candidate] of Object.entries(other.fields)) {
    const kept = fields.get(name);
    if (kept === undefined || supersedes(candidate, kept)) fields.set(name, candidate);
  }
  const sets = new Map(Object.entries(state.sets));
  for (const [name, values] of Object.entries(other.sets)) {
    sets.set(name, smallest([...(sets.get(name) ?? []), ...values]));
  }
  return {
    fields: Object.fromEntries(fields),
    sets: Object.fromEntries(sets),
    firstSeenAt: other.firstSeenAt < state.firstSeenAt ? other.firstSeenAt : state.firstSeenAt,
    lastSeenAt: other.lastSeenAt > state.lastSeenAt ? other.lastSeenAt : state.lastSeenAt,
    partial: other.partial && state.partial,
  };
}

type Kept = RecordState['fields'][string];
const supersedes = (candidate: Kept, kept: Kept): boolean =>
  candidate.by === kept.by
    ? canonicalJson(candidate.value) > canonicalJson(kept.value)
    : candidate.by > kept.by;

const smallest = (values: string[]): string[] =>
  [...new Set(values)].toSorted(byUnits).slice(0, maxSetValues);

/** UTF-16 unit order: locale order would differ between machines. */
const byUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The fields and sets as people see them. A set never hides a field of the same name. */
export function plainFields(state: RecordState): Record<string, JsonValue> {
  return Object.fromEntries([
    ...Object.entries(state.sets),
    ...Object.entries(state.fields).map(([name, kept]) => [name, kept.value] as const),
  ]);
}

/** JSON with keys in UTF-16 unit order and no spaces: equal values give equal bytes. */
export function canonicalJson(value: JsonValue | RecordState | null): string {
  if (Array.isArray(value)) return `[${value.map((element) => canonicalJson(element)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value as { [key: string]: JsonValue });
  const members = entries
    .toSorted(([a], [b]) => byUnits(a, b))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

const digits = (count: number, width: number): string => {
  const text = count.toString(36).padStart(width, '0');
  if (!Number.isSafeInteger(count) || count < 0 || text.length > width) {
    throw new RangeError(`order key part ${count} does not fit ${width} digits`);
  }
  return text;
};

/**
 * Where an observation stands among all: acceptance first, then task, output, file, row, part. Numbers are
 * base 36 in a fixed width (11 digits hold 2^53); `!` sorts below every character of an output's name.
 * @param file position of the file in the output's manifest
 * @param part see `partOf`
 */
export const orderKeyOf = (
  acceptedSequence: number,
  taskId: string,
  output: string,
  file: number,
  row: number,
  part: number,
): string =>
  [digits(acceptedSequence, 11), taskId, output, digits(file, 6), digits(row, 8), digits(part, 4)].join('!');

/** Parts of a row count from 0; records without a row have ordinals of their own, kept apart by this offset. */
const looseParts = 1_000_000;

/** The `part` of a record by the read event it came in and its position there: unique with the ordinal. */
export const partOf = (kind: 'row' | 'records', position: number): number =>
  kind === 'row' ? position : looseParts + position;
