import { randomFillSync } from 'node:crypto';

/**
 * A UUIDv7: 48 bits of milliseconds, then random. Ids made later sort later, up to the clock.
 * `at` is the maker's clock in ms.
 */
export function newId<Id extends string>(at: number = Date.now()): Id {
  const bytes = randomFillSync(Buffer.alloc(16));
  bytes.writeUIntBE(at, 0, 6);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}` as Id;
}
