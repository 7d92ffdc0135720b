// Records that several tools state. Each gives a list, empty where the value has no identity.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { domainOf, ipOf } from './places.ts';

type Fields = Record<string, JsonValue>;
type Sets = Record<string, string[]>;

export function domainDraft(host: string | null, fields: Fields = {}, sets: Sets = {}): RecordDraft[] {
  const name = domainOf(host);
  return name === null ? [] : [{ type: 'domain', fields: { name, ...fields }, sets }];
}

/** @param host a name of the address, or the address itself */
export function addressDraft(
  address: string | null,
  host: string | null = null,
  fields: Fields = {},
): RecordDraft[] {
  const ip = ipOf(address);
  return ip === null ? [] : [{ type: 'address', fields: { ip, ...fields }, sets: hostnames(host) }];
}

/** An open port of an address. */
export function serviceDraft(
  place: { ip: string | null; host: string | null; port: number | null; protocol?: string },
  fields: Fields = {},
): RecordDraft[] {
  const address = ipOf(place.ip);
  if (address === null || place.port === null) return [];
  const { port, protocol = 'tcp' } = place;
  return [
    {
      type: 'service',
      fields: { address, port, protocol, state: 'open', ...fields },
      sets: hostnames(place.host),
    },
  ];
}

/** A service that speaks HTTP, in nmap's words. */
export const webService = (scheme: string | null): Fields =>
  scheme === null ? {} : { service: 'http', tunnel: scheme === 'https' ? 'ssl' : null };

export const technologyDrafts = (parent: string | null, names: readonly string[]): RecordDraft[] =>
  parent === null
    ? []
    : names.map((text) => {
        const { name, version } = versioned(text);
        return { type: 'technology', fields: { parent, name, version } };
      });

/** `nginx:1.18.0` is a name and a version; a version has no blank. By index: a text may be colons and nothing else. */
function versioned(text: string): { name: string; version: string | null } {
  let blank = text.length - 1;
  while (blank >= 0 && text.charAt(blank).trim() !== '') blank -= 1;
  let colon = text.indexOf(':', Math.max(1, blank + 1));
  while (colon !== -1 && !/^\d$/.test(text.charAt(colon + 1))) colon = text.indexOf(':', colon + 1);
  return colon === -1
    ? { name: text, version: null }
    : { name: text.slice(0, colon), version: text.slice(colon + 1) };
}

function hostnames(host: string | null): Sets {
  const name = domainOf(host);
  return name === null ? {} : { hostnames: [name] };
}
