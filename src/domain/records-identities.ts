// The natural identity of each record type: which fields make it, and how they are normalized.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { RecordType } from '#sonar/contracts/records.ts';
import { dnsOwner, dnsType, dnsValue } from './records-dns.ts';
import { normalLocation, normalPlace, normalUrl } from './records-place.ts';
import { canonicalAddress } from './scope-address.ts';
import { normalizeDomain } from './scope-host.ts';

type Fields = Record<string, JsonValue>;
type Refusal = { reason: string };
export type Identity = { key: string; fields: Fields };

/** What a record type is to the inventory; a definition may declare further ones beside `builtInTypes`. */
export interface RecordTypeSpec {
  /** The fields that make the key. */
  required: readonly string[];
  /** Fields of the key that have a meaning where they are missing. */
  optional: readonly string[];
  /** The key and the identity fields in their normal form, or why there is none. Keying these again gives the same key. */
  identify: (fields: Fields) => Identity | Refusal;
}

export const builtInTypes = {
  domain: { required: ['name'], optional: [], identify: domainIdentity },
  address: { required: ['ip'], optional: [], identify: addressIdentity },
  dns: { required: ['name', 'type', 'value'], optional: [], identify: dnsIdentity },
  service: { required: ['address', 'port'], optional: ['protocol'], identify: serviceIdentity },
  endpoint: { required: ['url'], optional: [], identify: endpointIdentity },
  certificate: { required: ['sha256'], optional: [], identify: certificateIdentity },
  technology: { required: ['parent', 'name'], optional: [], identify: technologyIdentity },
  finding: { required: ['source', 'rule', 'target'], optional: ['location'], identify: findingIdentity },
} as const satisfies Record<RecordType, RecordTypeSpec>;

/** Text of a field for a message; long or hostile values are cut. */
export const shown = (value: JsonValue | undefined): string => JSON.stringify(value ?? null).slice(0, 100);

const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value.trim() : '');

/** A part of a key before its last: without blanks, so that parts cannot run into each other. */
export const keyPart = (text: string): string =>
  text.replaceAll('%', '%25').replaceAll(/\s/gu, (blank) => encodeURIComponent(blank));

function domainIdentity(fields: Fields): Identity | Refusal {
  const name = normalizeDomain(textOf(fields.name));
  return name === null
    ? { reason: `\`name\` is no domain: ${shown(fields.name)}` }
    : { key: name, fields: { name } };
}

const addressOf = (value: JsonValue | undefined): string | null => canonicalAddress(textOf(value));

function addressIdentity({ ip }: Fields): Identity | Refusal {
  const address = addressOf(ip);
  return address === null
    ? { reason: `\`ip\` is no address: ${shown(ip)}` }
    : { key: address, fields: { ip: address } };
}

function dnsIdentity(fields: Fields): Identity | Refusal {
  const name = dnsOwner(textOf(fields.name));
  if (name === null) return { reason: `\`name\` is no domain: ${shown(fields.name)}` };
  const type = dnsType(textOf(fields.type));
  if (type === null) return { reason: `\`type\` is no record type: ${shown(fields.type)}` };
  const value = typeof fields.value === 'string' ? dnsValue(type, fields.value) : null;
  if (value === null) return { reason: `\`value\` is no value of ${type}: ${shown(fields.value)}` };
  return { key: `${name} ${type} ${value}`, fields: { name, type, value } };
}

const protocols = ['tcp', 'udp', 'sctp'];

function serviceIdentity(fields: Fields): Identity | Refusal {
  const address = addressOf(fields.address);
  if (address === null) return { reason: `\`address\` is no address: ${shown(fields.address)}` };
  const protocol = fields.protocol ?? 'tcp';
  const normalProtocol = textOf(protocol).toLowerCase();
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

function endpointIdentity({ url }: Fields): Identity | Refusal {
  if (typeof url !== 'string') return { reason: `\`url\` is no text: ${shown(url)}` };
  const normal = normalUrl(url);
  return normal === null
    ? { reason: `\`url\` is no http or https URL: ${shown(url)}` }
    : { key: normal, fields: { url: normal } };
}

function certificateIdentity(fields: Fields): Identity | Refusal {
  const sha256 = textOf(fields.sha256).replaceAll(/[:\s]/g, '').toLowerCase();
  return /^[0-9a-f]{64}$/.test(sha256)
    ? { key: sha256, fields: { sha256 } }
    : { reason: `\`sha256\` is no SHA-256: ${shown(fields.sha256)}` };
}

function technologyIdentity(fields: Fields): Identity | Refusal {
  const parent = normalPlace(textOf(fields.parent));
  if (parent === '') return { reason: `\`parent\` is no text: ${shown(fields.parent)}` };
  const name = textOf(fields.name);
  if (name === '') return { reason: `\`name\` is no text: ${shown(fields.name)}` };
  // Tools differ in case; the field keeps the spelling that was seen.
  return { key: `${keyPart(parent)} ${name.toLowerCase()}`, fields: { parent, name } };
}

function findingIdentity(fields: Fields): Identity | Refusal {
  const source = textOf(fields.source).toLowerCase();
  if (source === '') return { reason: `\`source\` is no text: ${shown(fields.source)}` };
  const rule = textOf(fields.rule);
  if (rule === '') return { reason: `\`rule\` is no text: ${shown(fields.rule)}` };
  const target = normalPlace(textOf(fields.target));
  if (target === '') return { reason: `\`target\` is no text: ${shown(fields.target)}` };
  const location = normalLocation(textOf(fields.location));
  const key = [source, rule, target].map(keyPart).join(' ');
  return {
    key: location === '' ? key : `${key} ${location}`,
    fields: { source, rule, target, ...(location === '' ? {} : { location }) },
  };
}
