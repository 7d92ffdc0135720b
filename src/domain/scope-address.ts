// Addresses and CIDRs as ranges of integers, in the one spelling that every tool reads alike. Odd IPv4
// spellings (octal, hexadecimal, short, one integer) and IPv4 inside IPv6 are read differently by different
// tools; what is read differently could pass the check as one host and be scanned as another.
import { isIPv6 } from 'node:net';

export interface AddressRange {
  family: 4 | 6;
  first: bigint;
  last: bigint;
}

const bitsOf = { 4: 32, 6: 128 } as const;
const mappedFirst = 0xffff_0000_0000n;
const mappedLast = 0xffff_ffff_ffffn;

/** `127.0.0.1` in exactly four decimal parts without leading zeros; null for anything else. */
export function parseIpv4(text: string): bigint | null {
  const parts = text.split('.');
  if (parts.length !== 4) return null;
  let value = 0n;
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return null;
    value = value * 256n + BigInt(part);
  }
  return value;
}

/** An IPv6 address without zone and without dotted IPv4 tail; null for anything else. */
export function parseIpv6(text: string): bigint | null {
  if (!isIPv6(text) || text.includes('%') || text.includes('.')) return null;
  const [head = '', tail] = text.split('::');
  const groupsOf = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const before = groupsOf(head);
  const after = tail === undefined ? [] : groupsOf(tail);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return BigInt(`0x${[...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join('')}`);
}

/** True where a range holds addresses of `::ffff:0:0/96`, IPv4 in IPv6's clothes. */
export const touchesMapped = ({ family, first, last }: AddressRange): boolean =>
  family === 6 && first <= mappedLast && last >= mappedFirst;

export function parseAddress(text: string): AddressRange | null {
  const v4 = parseIpv4(text);
  if (v4 !== null) return { family: 4, first: v4, last: v4 };
  const v6 = parseIpv6(text);
  return v6 === null ? null : { family: 6, first: v6, last: v6 };
}

export interface Cidr extends AddressRange {
  /** The address as written, which may have bits set beyond the prefix. */
  written: bigint;
  prefix: number;
}

/** `10.0.0.0/8`, `2001:db8::/32`. Bits beyond the prefix are dropped, as tools that scan a network do. */
export function parseCidr(text: string): Cidr | null {
  const [address = '', length, ...rest] = text.split('/');
  if (length === undefined || rest.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(length)) return null;
  const parsed = parseAddress(address);
  if (parsed === null || Number(length) > bitsOf[parsed.family]) return null;
  const hostBits = BigInt(bitsOf[parsed.family] - Number(length));
  const first = (parsed.first >> hostBits) << hostBits;
  const last = first + (1n << hostBits) - 1n;
  return { family: parsed.family, first, last, written: parsed.first, prefix: Number(length) };
}

export const formatIpv4 = (value: bigint): string =>
  [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join('.');

/** RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups as `::`. */
export function formatIpv6(value: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((value >> BigInt(16 * (7 - index))) & 0xffffn).toString(16),
  );
  let best = { start: 0, length: 1 };
  for (let start = 0; start < 8; start += 1) {
    let length = 0;
    while (groups[start + length] === '0') length += 1;
    if (length > best.length) best = { start, length };
  }
  if (best.length === 1) return groups.join(':');
  return `${groups.slice(0, best.start).join(':')}::${groups.slice(best.start + best.length).join(':')}`;
}

export const formatAddress = (family: 4 | 6, value: bigint): string =>
  family === 4 ? formatIpv4(value) : formatIpv6(value);

/** Exactly what `parseIpv4` reads: such a text is its own canonical one, and readers see millions of them. */
const ipv4Text = /^(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/;

/** The one text of an address, with IPv4 inside IPv6 shown as IPv4; null when it is none. */
export function canonicalAddress(text: string): string | null {
  if (ipv4Text.test(text)) return text;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1];
  const range = parseAddress(mapped ?? text);
  if (range === null) return null;
  return touchesMapped(range)
    ? formatIpv4(range.first - mappedFirst)
    : formatAddress(range.family, range.first);
}

/** Sorted ranges that neither overlap nor touch: the union of what went in. */
export function mergeRanges(ranges: readonly AddressRange[]): AddressRange[] {
  const merged: AddressRange[] = [];
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const previous = merged.at(-1);
    if (previous !== undefined && range.first <= previous.last + 1n) {
      if (range.last > previous.last) previous.last = range.last;
    } else merged.push({ ...range });
  }
  return merged;
}

/** The last merged range that starts at or before `value`, by bisection: scopes may hold many ranges. */
function rangeBefore(merged: readonly AddressRange[], value: bigint): AddressRange | undefined {
  let low = 0;
  let high = merged.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const range = merged[middle];
    if (range !== undefined && range.first <= value) low = middle + 1;
    else high = middle;
  }
  return merged[low - 1];
}

/** @param merged of `mergeRanges`, of the range's own family */
export const contains = (merged: readonly AddressRange[], { first, last }: AddressRange): boolean =>
  (rangeBefore(merged, first)?.last ?? -1n) >= last;

/** @param merged of `mergeRanges`, of the range's own family */
export const overlaps = (merged: readonly AddressRange[], { first, last }: AddressRange): boolean =>
  (rangeBefore(merged, last)?.last ?? -1n) >= first;
