// Identities of records: the same thing in the world gets the same key, however a tool spelled it.
// Uses node:crypto, so workflows must not import it.
import { createHash } from 'node:crypto';
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { builtInTypes, type RecordTypeSpec } from './records-identities.ts';
import { storableObject, storableText } from './records-storable.ts';

/** UTF-8 bytes a key may have; a longer one is replaced by its hash, to fit an index. */
export const maxKeyBytes = 512;
const maxFields = 64;
const maxSets = 16;
/** Values that one observation may add to a set, and UTF-16 units of each. */
const maxSetInput = 256;
const maxSetValueLength = 1024;

export interface KeyedRecord {
  type: string;
  key: string;
  /** Storable, without nulls, the identity fields in their normal form. */
  fields: Record<string, JsonValue>;
  sets: Record<string, string[]>;
}

type Keyed = ({ ok: true } & KeyedRecord) | { ok: false; reason: string };

/**
 * The record's key and its normalized, storable fields; or why it has none.
 * @param types the types that are known here: `builtInTypes`, and what a definition declares.
 */
export function recordKey(
  draft: RecordDraft<string>,
  types: Readonly<Record<string, RecordTypeSpec>> = builtInTypes,
): Keyed {
  const spec = Object.hasOwn(types, draft.type) ? types[draft.type] : undefined;
  if (spec === undefined) return { ok: false, reason: `${draft.type}: there is no such record type` };
  const identity = spec.identify(draft.fields);
  if ('reason' in identity) return { ok: false, reason: `${draft.type}: ${identity.reason}` };
  const stated = storableObject({ ...identity.fields, ...draft.fields, ...identity.fields }, maxFields);
  return {
    ok: true,
    type: draft.type,
    key: boundedKey(storableText(identity.key)),
    fields: Object.fromEntries(Object.entries(stated).filter(([, value]) => value !== null)),
    sets: storableSets(draft.sets ?? {}),
  };
}

const storableSets = (sets: Record<string, string[]>): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(sets)
      .filter(([, values]) => values.length > 0)
      .slice(0, maxSets)
      .map(([name, values]) => [
        storableText(name, 128),
        values.slice(0, maxSetInput).map((value) => storableText(value, maxSetValueLength)),
      ]),
  );

function boundedKey(key: string): string {
  if (Buffer.byteLength(key) <= maxKeyBytes) return key;
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}
