// Host names and the targets they stand in, read so narrowly that no tool can see another host in them.
import { domainToASCII } from 'node:url';
import {
  type AddressRange,
  parseAddress,
  parseCidr,
  parseIpv4,
  parseIpv6,
  touchesMapped,
} from './scope-address.ts';

const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * A domain in lower-case ASCII (IDN as `xn--`) without trailing dot, or null. The last label starts with a
 * letter: a numeric or `0x` one makes resolvers read the whole as an IPv4 address.
 */
export function normalizeDomain(text: string): string | null {
  // domainToASCII reads a whole URL authority, so only letters, digits and marks beyond ASCII reach it.
  if (!/^[\w.\-\u0080-\u{10ffff}]+$/u.test(text) || text.length > 1024) return null;
  const ascii = /^[\u0000-\u007f]*$/.test(text) ? text.toLowerCase() : domainToASCII(text);
  const name = ascii.endsWith('.') ? ascii.slice(0, -1) : ascii;
  if (name === '' || name.length > 253) return null;
  const labels = name.split('.');
  if (!labels.every((part) => label.test(part))) return null;
  return /^[a-z_]/.test(labels.at(-1) ?? '') ? name : null;
}

export type Host = { kind: 'domain'; name: string } | { kind: 'range'; range: AddressRange };

/** A bare host: a domain, an IPv4 or an IPv6 address. */
function parseHost(text: string): Host | null {
  const range = parseAddress(text);
  if (range !== null) return touchesMapped(range) ? null : { kind: 'range', range };
  const name = normalizeDomain(text);
  return name === null ? null : { kind: 'domain', name };
}

const isPort = (text: string): boolean => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535;

/** `host`, `host:port`, `[v6]`, `[v6]:port`; a bare IPv6 address where `bareIpv6`. */
function parseHostAndPort(text: string, bareIpv6: boolean): Host | null {
  const bracketed = /^\[([0-9a-fA-F:]+)\](?::(.*))?$/s.exec(text);
  if (bracketed !== null) {
    const [, address = '', port] = bracketed;
    if (parseIpv6(address) === null || (port !== undefined && !isPort(port))) return null;
    return parseHost(address);
  }
  if (bareIpv6 && parseIpv6(text) !== null) return parseHost(text);
  const colon = text.indexOf(':');
  if (colon === -1) return parseHost(text);
  const host = text.slice(0, colon);
  if (!isPort(text.slice(colon + 1))) return null;
  return parseIpv4(host) === null && normalizeDomain(host) === null ? null : parseHost(host);
}

/**
 * The host of a URL. Parsers disagree where user information, backslashes or a missing path come in
 * (`http://allowed@evil/`, `http://allowed\@evil/`, `http://allowed?@evil/`): those are no target.
 */
function hostOfUrl(text: string): Host | null {
  const parts = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)([?#][^/]*)?/i.exec(text);
  const [, authority = '', early = ''] = parts ?? [];
  if (parts === null || authority === '' || early.includes('@')) return null;
  return parseHostAndPort(authority, false);
}

/** What a target stands for, or null when it is none that every tool reads alike. */
export function parseTarget(text: string): Host | null {
  if (text === '' || text.length > 8192) return null;
  if (/[\u0000-\u0020\u007f-\u00a0\\\u2028\u2029]|\s/.test(text) || !text.isWellFormed()) return null;
  if (text.includes('://')) return hostOfUrl(text);
  if (text.includes('/')) {
    const range = parseCidr(text);
    return range === null || touchesMapped(range) ? null : { kind: 'range', range };
  }
  return parseHostAndPort(text, true);
}
