// Record types that definitions declare, as the inventory knows its own: key fields and how each is spelled.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { KeyForm, RecordDeclaration } from '#sonar/contracts/record-declaration.ts';
import { builtInTypes, type Identity, keyPart, type RecordTypeSpec, shown } from './records-identities.ts';
import { normalHost, normalUrl } from './records-place.ts';
import { canonicalAddress } from './scope-address.ts';
import { normalizeDomain } from './scope-host.ts';

export type RecordTypes = Readonly<Record<string, RecordTypeSpec>>;

/** Sonar's own types and the declared ones. */
export const knownTypes = (declared: Readonly<Record<string, RecordDeclaration>> = {}): RecordTypes => ({
  ...Object.fromEntries(Object.entries(declared).map(([name, type]) => [name, specOf(type)])),
  ...builtInTypes,
});

const specOf = (declaration: RecordDeclaration): RecordTypeSpec => ({
  required: declaration.key,
  optional: [],
  identify: (fields) => identityOf(declaration, fields),
});

const forms: Record<KeyForm, (text: string) => string | null> = {
  domain: normalizeDomain,
  address: canonicalAddress,
  host: normalHost,
  url: normalUrl,
  lower: (text) => text.toLowerCase(),
};

function identityOf(
  { key, normalize }: RecordDeclaration,
  fields: Record<string, JsonValue>,
): Identity | { reason: string } {
  const parts: string[] = [];
  const normal: [string, JsonValue][] = [];
  for (const name of key) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const text = textOf(value);
    if (text === null) return { reason: `\`${name}\` is no text, number or flag: ${shown(value)}` };
    const form = Object.hasOwn(normalize, name) ? normalize[name] : undefined;
    const spelled = form === undefined ? text : forms[form](text);
    if (spelled === null) return { reason: `\`${name}\` is no ${form}: ${shown(value)}` };
    parts.push(spelled);
    normal.push([name, typeof value === 'string' ? spelled : (value ?? null)]);
  }
  const last = parts.pop() ?? '';
  return { key: [...parts.map(keyPart), last].join(' '), fields: Object.fromEntries(normal) };
}

/** `8` and `"8"` are one key: tools write numbers in both ways. */
function textOf(value: JsonValue | undefined): string | null {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? null : text;
}
