// Texts that say where something is: a host, a host with a port, a service, a URL. Two spellings of one place
// give one text, so that a finding of two tools about it has one target.
import { canonicalAddress } from './scope-address.ts';
import { normalizeDomain } from './scope-host.ts';

const webSchemes = ['http:', 'https:', 'ws:', 'wss:'];

/** The one text of a web URL, or null when it is none. */
export function normalUrl(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !webSchemes.includes(url.protocol)) return null;
  const hostname = url.hostname.startsWith('[')
    ? url.hostname
    : (normalizeDomain(url.hostname) ?? url.hostname);
  // Without user information and fragment: neither tells endpoints apart, and the first may be a secret.
  const port = url.port === '' ? '' : `:${url.port}`;
  return `${url.protocol}//${hostname}${port}${url.pathname}${url.search}`;
}

/** A domain or an address, also in brackets, in its one text; null when it is neither. */
export function normalHost(text: string): string | null {
  const bare = /^\[([^\]]*)\]$/.exec(text)?.[1] ?? text;
  return canonicalAddress(bare) ?? normalizeDomain(text);
}

const isPort = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) <= 65_535;

/** `host:port` or `[v6]:port`; null when it is no such pair. */
function normalHostAndPort(text: string): string | null {
  const [, name = '', port = ''] = /^(\[[^\]]+\]|[^:\s]+):(\d{1,5})$/.exec(text) ?? [];
  const host = isPort(port) ? normalHost(name) : null;
  if (host === null) return null;
  return `${host.includes(':') ? `[${host}]` : host}:${Number(port)}`;
}

/** The key of a service: `address/protocol/port`. */
function normalService(text: string): string | null {
  const [, name = '', protocol = '', port = ''] = /^([^/\s]+)\/(tcp|udp|sctp)\/(\d{1,5})$/i.exec(text) ?? [];
  const address = isPort(port) ? canonicalAddress(name) : null;
  return address === null ? null : `${address}/${protocol.toLowerCase()}/${Number(port)}`;
}

/** The one text of a place; a text that is no place Sonar knows keeps its spelling. */
export function normalPlace(text: string): string {
  const trimmed = text.trim();
  return (
    normalHost(trimmed) ??
    normalHostAndPort(trimmed) ??
    normalService(trimmed) ??
    (trimmed.includes('://') ? normalUrl(trimmed) : null) ??
    trimmed
  );
}

/**
 * Where in a target something is. Of a URL only the origin is normalized: how a path is written may be the finding
 * itself, as in `/a/..%2f`.
 */
export function normalLocation(text: string): string {
  const trimmed = text.trim();
  const [, origin = '', rest = ''] = /^([a-z]+:\/\/[^/?#\\]*)([^#]*)/i.exec(trimmed) ?? [];
  const normal = origin === '' ? null : normalUrl(origin);
  if (normal === null) return normalPlace(trimmed);
  return rest.startsWith('/') ? normal.slice(0, -1) + rest : normal + rest;
}
