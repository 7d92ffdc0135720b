import { randomFillSync } from 'node:crypto';

// 12 bits count within a millisecond, so ids of one process sort in the order in which they were made.
const maxCount = 0xfff;
let lastAt = 0;
let count = 0;

/**
 * A UUIDv7 (RFC 9562, method 1): 48 bits of milliseconds, a counter, then random. Ids of one process sort in order
 * of making, even when its clock steps back; those of several sort by their clocks. `at` is the clock in ms.
 */
export function newId<Id extends string>(at: number = Date.now()): Id {
  if (at > lastAt) {
    lastAt = at;
    count = 0;
  } else if (count === maxCount) {
    lastAt += 1;
    count = 0;
  } else count += 1;
  const bytes = randomFillSync(Buffer.alloc(16));
  bytes.writeUIntBE(lastAt, 0, 6);
  bytes.writeUInt16BE(0x7000 | count, 6);
  const hex = bytes.toString('hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}` as Id;
}
