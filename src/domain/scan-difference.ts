// What differs between what two scans saw of one record. Presence is a fact; absence is one only where the later scan
// looked, and its commands all came to their end.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { canonicalJson, type RecordState } from './inventory-fold.ts';

export interface Sighting {
  state: RecordState;
  steps: readonly string[];
}
export interface FieldChange {
  name: string;
  before: JsonValue;
  after: JsonValue;
}
export type Difference =
  | { change: 'added' | 'gone' }
  | { change: 'changed'; fields: FieldChange[] }
  | { change: 'unknown'; fields: FieldChange[]; reason: string };

/** Why absences cannot be judged: of the scans as a whole, or of one step in either of them. */
export interface Coverage {
  whole: string | null;
  /** Step → reason; steps that are not here are wholly completed in both. */
  steps: ReadonlyMap<string, string>;
}

/** Null: no difference. */
export function differenceOf(
  before: Sighting | undefined,
  after: Sighting | undefined,
  coverage: Coverage,
): Difference | null {
  if (before === undefined) return after === undefined ? null : { change: 'added' };
  const reason = whyUnjudged(before.steps, coverage);
  if (after === undefined) {
    return reason === null ? { change: 'gone' } : { change: 'unknown', fields: [], reason };
  }
  const fields = fieldChanges(before.state, after.state);
  if (fields.length === 0) return null;
  if (reason === null) return { change: 'changed', fields };
  const judged = fields.filter(({ before: was, after: is }) => !isLoss(was, is));
  return judged.length > 0 ? { change: 'changed', fields: judged } : { change: 'unknown', fields, reason };
}

function whyUnjudged(steps: readonly string[], coverage: Coverage): string | null {
  if (coverage.whole !== null) return coverage.whole;
  for (const step of steps) {
    const reason = coverage.steps.get(step);
    if (reason !== undefined) return reason;
  }
  // Seen by an import: nobody looked for it again.
  return steps.length === 0 ? 'no step of a scan showed it' : null;
}

function fieldChanges(before: RecordState, after: RecordState): FieldChange[] {
  const was = valuesOf(before);
  const is = valuesOf(after);
  return [...new Set([...was.keys(), ...is.keys()])]
    .toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    .map((name) => ({ name, before: was.get(name) ?? null, after: is.get(name) ?? null }))
    .filter((field) => canonicalJson(field.before) !== canonicalJson(field.after));
}

/** A field hides a set of the same name, as everywhere. */
const valuesOf = (state: RecordState): Map<string, JsonValue> =>
  new Map<string, JsonValue>([
    ...Object.entries(state.sets),
    ...Object.entries(state.fields).map(([name, kept]) => [name, kept.value] as const),
  ]);

/** Whether nothing new was seen, but something old was not. */
function isLoss(before: JsonValue, after: JsonValue): boolean {
  if (after === null) return true;
  if (!Array.isArray(before) || !Array.isArray(after)) return false;
  const known = new Set(before.map((value) => canonicalJson(value)));
  return after.every((value) => known.has(canonicalJson(value)));
}
