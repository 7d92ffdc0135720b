// What a scan may touch. Deny wins; what is not allowed is refused; what cannot be read as one host, URL or
// CIDR is refused too.
import type { Scope } from '#sonar/contracts/definition.ts';
import {
  type AddressRange,
  contains,
  formatAddress,
  mergeRanges,
  overlaps,
  parseAddress,
  parseCidr,
  touchesMapped,
} from './scope-address.ts';
import { type Host, normalizeDomain, parseTarget } from './scope-host.ts';

interface ScopeSide {
  /** Each covers its subdomains. */
  domains: ReadonlySet<string>;
  ranges: { 4: readonly AddressRange[]; 6: readonly AddressRange[] };
}

/** A checked scope, ready for many checks. */
export interface ParsedScope {
  allow: ScopeSide;
  deny: ScopeSide;
}

export interface ScopeProblem {
  /** `allow[0]`, `deny[3]`, `allow`. */
  path: string;
  message: string;
  hint: string | null;
}

export type ScopeCheck =
  | { kind: 'allowed' }
  | { kind: 'refused'; reason: 'denied' | 'not_allowed' | 'unparseable' };

/** Checks every entry and reports all faults at once. A scope that allows nothing is a fault. */
export function parseScope(
  scope: Scope,
): { ok: true; scope: ParsedScope } | { ok: false; problems: ScopeProblem[] } {
  const problems: ScopeProblem[] = [];
  const allow = parseSide('allow', scope.allow, problems);
  const deny = parseSide('deny', scope.deny, problems);
  if (scope.allow.length === 0) {
    problems.push({
      path: 'allow',
      message: 'the scope allows nothing',
      hint: 'list the domains, addresses and CIDRs that may be scanned',
    });
  }
  return problems.length === 0 ? { ok: true, scope: { allow, deny } } : { ok: false, problems };
}

function parseSide(side: 'allow' | 'deny', entries: readonly string[], problems: ScopeProblem[]): ScopeSide {
  const domains = new Set<string>();
  const ranges: AddressRange[] = [];
  for (const [index, entry] of entries.entries()) {
    const parsed = parseEntry(entry);
    if ('message' in parsed) problems.push({ path: `${side}[${index}]`, ...parsed });
    else if (parsed.kind === 'domain') domains.add(parsed.name);
    else ranges.push(parsed.range);
  }
  return {
    domains,
    ranges: {
      4: mergeRanges(ranges.filter(({ family }) => family === 4)),
      6: mergeRanges(ranges.filter(({ family }) => family === 6)),
    },
  };
}

function parseEntry(entry: string): Host | { message: string; hint: string | null } {
  const cidr = parseCidr(entry);
  if (cidr !== null) {
    if (cidr.written === cidr.first) return { kind: 'range', range: cidr };
    const network = `${formatAddress(cidr.family, cidr.first)}/${cidr.prefix}`;
    return {
      message: `\`${entry}\` has bits set beyond its prefix`,
      hint: `write \`${network}\` for the network`,
    };
  }
  const range = parseAddress(entry);
  if (range !== null) {
    if (!touchesMapped(range)) return { kind: 'range', range };
    return { message: `\`${entry}\` is an IPv4 address in IPv6 form`, hint: 'write the IPv4 address' };
  }
  const name = normalizeDomain(entry);
  if (name !== null) return { kind: 'domain', name };
  return { message: `\`${entry}\` is no domain, address or CIDR`, hint: hintFor(entry) };
}

function hintFor(entry: string): string | null {
  if (entry.startsWith('*.')) return `a domain covers its subdomains: write \`${entry.slice(2)}\``;
  if (entry === '*') return 'name the domains and networks; `0.0.0.0/0` and `::/0` are all addresses';
  if (entry.includes('://')) return 'write the host of the URL alone';
  if (/^[^:]*:\d+$/.test(entry)) return 'a scope names hosts, not ports';
  if (/^[0-9.x]+$/i.test(entry)) return 'an IPv4 address is four decimal numbers without leading zeros';
  return null;
}

/**
 * @param target a domain, address, CIDR, `host:port`, `[v6]:port` or URL. A CIDR must lie wholly in what is
 * allowed and touch nothing denied. Names are not resolved: a domain is checked as a domain.
 */
export function checkTarget(scope: ParsedScope, target: string): ScopeCheck {
  const host = parseTarget(target);
  if (host === null) return { kind: 'refused', reason: 'unparseable' };
  if (host.kind === 'domain') {
    if (coversDomain(scope.deny, host.name)) return { kind: 'refused', reason: 'denied' };
    return coversDomain(scope.allow, host.name)
      ? { kind: 'allowed' }
      : { kind: 'refused', reason: 'not_allowed' };
  }
  const { range } = host;
  if (overlaps(scope.deny.ranges[range.family], range)) return { kind: 'refused', reason: 'denied' };
  return contains(scope.allow.ranges[range.family], range)
    ? { kind: 'allowed' }
    : { kind: 'refused', reason: 'not_allowed' };
}

function coversDomain(side: ScopeSide, name: string): boolean {
  for (let suffix = name; ; suffix = suffix.slice(suffix.indexOf('.') + 1)) {
    if (side.domains.has(suffix)) return true;
    if (!suffix.includes('.')) return false;
  }
}
