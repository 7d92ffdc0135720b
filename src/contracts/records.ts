// What readers give and the inventory keeps.
import type { JsonValue, Row } from './definition.ts';

/** The record types that Sonar brings; the key of each one's natural identity is made in `domain/records.ts`. */
export const recordTypes = [
  'domain',
  'address',
  'dns',
  'service',
  'endpoint',
  'certificate',
  'technology',
  'finding',
] as const;
export type RecordType = (typeof recordTypes)[number];

/** A record that a row states, before it has a key. `sets` collect values over observations. */
export interface RecordDraft<Type extends string = RecordType> {
  type: Type;
  fields: Record<string, JsonValue>;
  sets?: Record<string, string[]>;
}

export type ReadEvent =
  | { kind: 'row'; ordinal: number; row: Row; records: RecordDraft<string>[] }
  /** Records that belong to no row, such as a host without an open port. Ordinals count these events alone. */
  | { kind: 'records'; ordinal: number; records: RecordDraft<string>[] }
  /** Ordinals count the bad ones alone. One bad record never loses its neighbours; the sample is at most 200 safe characters. */
  | { kind: 'bad'; ordinal: number; reason: string; sample: string }
  | { kind: 'warning'; message: string };
