// Hosts and URLs of rows in the spelling that records have.
import { normalHost } from '#sonar/domain/records-place.ts';
import { canonicalAddress } from '#sonar/domain/scope-address.ts';
import { normalizeDomain } from '#sonar/domain/scope-host.ts';

/** The address in its one text, or null. */
export const ipOf = (text: string | null): string | null =>
  // Most texts that are asked about are names; reading an address costs more than seeing that.
  text === null || !/^\s*[\d.]+\s*$|:/.test(text) ? null : canonicalAddress(text.trim());

/** The domain in its one text, or null; of a wildcard the domain it covers. */
export const domainOf = (text: string | null): string | null =>
  text === null ? null : normalizeDomain(text.trim().replace(/^\*\./, ''));

/** A host in its one text where it is one. */
export const hostOf = (text: string | null): string | null =>
  text === null ? null : normalHost(text.trim());

/** The parts of a web URL as rows have them; all null where the text is none. */
export interface WebPlace {
  url: string | null;
  scheme: string | null;
  host: string | null;
  port: number | null;
  path: string | null;
  origin: string | null;
}

const nowhere: WebPlace = { url: null, scheme: null, host: null, port: null, path: null, origin: null };

/** `url` keeps its query; user information and fragment are dropped, as in the endpoint's key. */
export function webPlaceOf(text: string | null): WebPlace {
  const parsed = text === null ? null : URL.parse(text);
  if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) return nowhere;
  const scheme = parsed.protocol.slice(0, -1);
  const host = normalHost(parsed.hostname) ?? parsed.hostname;
  const shown = host.includes(':') ? `[${host}]` : host;
  const port = parsed.port === '' ? '' : `:${parsed.port}`;
  return {
    url: `${scheme}://${shown}${port}${parsed.pathname}${parsed.search}`,
    scheme,
    host,
    port: parsed.port === '' ? (scheme === 'https' ? 443 : 80) : Number(parsed.port),
    path: parsed.pathname,
    origin: `${scheme}://${shown}${port}`,
  };
}

/** The URL of a web service; the scheme's own port is not written. */
export function urlOf(host: string, port: number, tls: boolean): string | null {
  const authority = host.includes(':') ? `[${host}]` : host;
  return URL.parse(`${tls ? 'https' : 'http'}://${authority}:${port}/`)?.href ?? null;
}

/** `host:port` and `[v6]:port`. */
export function hostAndPort(text: string): { host: string; port: number } | null {
  const [, name = '', digits = ''] = /^(\[[^\]]+\]|[^:\s]+):(\d{1,5})$/.exec(text.trim()) ?? [];
  const host = hostOf(name);
  const port = Number(digits);
  return host === null || port < 1 || port > 65_535 ? null : { host, port };
}

/** Host or address with its port, as command lines take it; null where one of the two is missing. */
export const withPort = (host: string | null, port: number | null): string | null =>
  host === null || port === null ? null : `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** How rows name an open port: by the name of the host, and by its address. */
export const portNames = (
  host: string | null,
  ip: string | null,
  port: number | null,
): { host_port: string | null; ip_port: string | null } => ({
  host_port: withPort(host ?? ip, port),
  ip_port: withPort(ip, port),
});
