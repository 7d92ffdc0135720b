// Identities of records: the same thing in the world gets the same key, however a tool spelled it.
// Uses node:crypto, so workflows must not import it.
import { createHash } from 'node:crypto';
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { RecordDraft, RecordType } from '#sonar/contracts/records.ts';
import { storableObject, storableText } from './records-storable.ts';
import { canonicalAddress } from './scope-address.ts';
import { normalizeDomain } from './scope-host.ts';

/** UTF-8 bytes a key may have; a longer one is replaced by its hash, to fit an index. */
export const maxKeyBytes = 512;
const maxFields = 64;
const maxSets = 16;
/** Values that one observation may add to a set, and UTF-16 units of each. */
const maxSetInput = 256;
const maxSetValueLength = 1024;

/** The fields that make a record's key; `service` takes `tcp` where no protocol is given. */
export const identityFields = {
  address: { required: ['ip'], optional: [] },
  service: { required: ['address', 'port'], optional: ['protocol'] },
  endpoint: { required: ['url'], optional: [] },
} as const satisfies Record<RecordType, { required: readonly string[]; optional: readonly string[] }>;

export interface KeyedRecord {
  type: RecordType;
  key: string;
  /** Storable, without nulls, the identity fields in their normal form. */
  fields: Record<string, JsonValue>;
  sets: Record<string, string[]>;
}

type Identity = { key: string; fields: Record<string, JsonValue> };
type Refusal = { reason: string };

const identities = {
  address: addressIdentity,
  service: serviceIdentity,
  endpoint: endpointIdentity,
} satisfies Record<RecordType, (fields: Record<string, JsonValue>) => Identity | Refusal>;

/** The record's key and its normalized, storable fields; or why it has none. */
export function recordKey(draft: RecordDraft): ({ ok: true } & KeyedRecord) | { ok: false; reason: string } {
  const identity = identities[draft.type](draft.fields);
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

/** Text of a field for a message; long or hostile values are cut. */
const shown = (value: JsonValue | undefined): string => JSON.stringify(value ?? null).slice(0, 100);

function addressIdentity({ ip }: Record<string, JsonValue>): Identity | Refusal {
  const address = addressOf(ip);
  return address === null
    ? { reason: `\`ip\` is no address: ${shown(ip)}` }
    : { key: address, fields: { ip: address } };
}

const addressOf = (value: JsonValue | undefined): string | null =>
  typeof value === 'string' ? canonicalAddress(value.trim()) : null;

const protocols = ['tcp', 'udp', 'sctp'];

function serviceIdentity(fields: Record<string, JsonValue>): Identity | Refusal {
  const address = addressOf(fields.address);
  if (address === null) return { reason: `\`address\` is no address: ${shown(fields.address)}` };
  const protocol = fields.protocol ?? 'tcp';
  const normalProtocol = typeof protocol === 'string' ? protocol.trim().toLowerCase() : '';
  if (!protocols.includes(normalProtocol)) {
    return { reason: `\`protocol\` is none of ${protocols.join(', ')}: ${shown(protocol)}` };
  }
  const port = portOf(fields.port);
  if (port === null) return { reason: `\`port\` is no port: ${shown(fields.port)}` };
  return {
    key: `${address}/${normalProtocol}/${port}`,
    fields: { address, protocol: normalProtocol, port },
  };
}

/** Tools write ports as numbers and as text. */
function portOf(value: JsonValue | undefined): number | null {
  const port = typeof value === 'string' && /^\d{1,5}$/.test(value.trim()) ? Number(value) : value;
  return typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535 ? port : null;
}

const webSchemes = ['http:', 'https:', 'ws:', 'wss:'];

function endpointIdentity(fields: Record<string, JsonValue>): Identity | Refusal {
  const text = fields.url;
  if (typeof text !== 'string') return { reason: `\`url\` is no text: ${shown(text)}` };
  const url = URL.parse(text);
  if (url === null || !webSchemes.includes(url.protocol)) {
    return { reason: `\`url\` is no http or https URL: ${shown(text)}` };
  }
  const hostname = url.hostname.startsWith('[')
    ? url.hostname
    : (normalizeDomain(url.hostname) ?? url.hostname);
  // Without user information and fragment: neither tells endpoints apart, and the first may be a secret.
  const port = url.port === '' ? '' : `:${url.port}`;
  const normal = `${url.protocol}//${hostname}${port}${url.pathname}${url.search}`;
  return { key: normal, fields: { url: normal } };
}
