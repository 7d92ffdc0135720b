// DNS records as identities: owner name, type, value, each in one spelling.
import { canonicalAddress, parseAddress } from './scope-address.ts';
import { normalizeDomain } from './scope-host.ts';

/** The owner name; an address stands for its reverse name, since tools print PTR answers under the address. */
export function dnsOwner(text: string): string | null {
  const address = canonicalAddress(text);
  if (address !== null) return reverseName(address);
  // `*` is an owner name of its own: the wildcard.
  if (!text.startsWith('*.')) return normalizeDomain(text);
  const parent = normalizeDomain(text.slice(2));
  return parent === null ? null : `*.${parent}`;
}

function reverseName(address: string): string {
  const range = parseAddress(address);
  if (range === null) throw new Error(`${address} is no canonical address`);
  if (range.family === 4) return `${address.split('.').toReversed().join('.')}.in-addr.arpa`;
  const nibbles = range.first.toString(16).padStart(32, '0').split('');
  return `${nibbles.toReversed().join('.')}.ip6.arpa`;
}

/** `A`, `TYPE65`: upper case; null when it is no type's name. */
export const dnsType = (text: string): string | null =>
  /^[A-Za-z][A-Za-z0-9-]{0,15}$/.test(text) ? text.toUpperCase() : null;

/** Types whose value is one name. An exchange's preference is no part of its identity: not every tool prints it. */
const nameTypes = new Set(['CNAME', 'DNAME', 'NS', 'PTR', 'MX']);
/** Types whose value holds names among numbers. In all others (TXT, keys, hashes) case and dots count. */
const mixedTypes = new Set(['SRV', 'SOA', 'RP', 'HTTPS', 'SVCB']);

/** The value in its one spelling, or null when the type cannot have it. */
export function dnsValue(type: string, text: string): string | null {
  if (text.trim() === '') return null;
  if (type === 'A' || type === 'AAAA') {
    const address = canonicalAddress(text.trim());
    return address !== null && address.includes(':') === (type === 'AAAA') ? address : null;
  }
  if (mixedTypes.has(type)) return text.trim().toLowerCase().replace(/\.$/, '');
  if (!nameTypes.has(type)) return text;
  const name = type === 'MX' ? text.trim().replace(/^\d+\s+/, '') : text.trim();
  // A lone dot is the null exchange of RFC 7505.
  return name === '.' ? name : normalizeDomain(name);
}
