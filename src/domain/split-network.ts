// `split: /24`: large networks in pieces that one task each can take.
import { formatAddress, parseCidr } from './scope-address.ts';

/** Pieces of one network; beyond it the author has mistaken the size. */
const maxPieces = 2n ** 24n;

export type Pieces = { ok: true; pieces: Iterable<string> } | { ok: false; reason: string };

/**
 * Networks of `prefix` that make up the given one, in order of their addresses. A network that is as small or
 * smaller, an address, a name and one of a family without such a prefix stay as they are.
 */
export function splitNetwork(text: string, prefix: number): Pieces {
  const network = parseCidr(text);
  const bits = network?.family === 6 ? 128 : 32;
  if (network === null || network.prefix >= prefix || prefix > bits) return { ok: true, pieces: [text] };
  const count = 1n << BigInt(prefix - network.prefix);
  if (count > maxPieces)
    return { ok: false, reason: `${text} would be ${count} networks of /${prefix}, more than ${maxPieces}` };
  return { ok: true, pieces: piecesOf(network.family, network.first, BigInt(bits - prefix), count, prefix) };
}

function* piecesOf(
  family: 4 | 6,
  first: bigint,
  hostBits: bigint,
  count: bigint,
  prefix: number,
): Iterable<string> {
  for (let piece = 0n; piece < count; piece += 1n)
    yield `${formatAddress(family, first + (piece << hostBits))}/${prefix}`;
}
