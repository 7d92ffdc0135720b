// A generator that gives the same numbers for the same seed, everywhere.

export interface Random {
  /** In [0, 1). */
  next(): number;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  pick<T>(items: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

/** mulberry32: 32 bits of state are plenty for a schedule. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    pick: (items) => {
      const picked = items[between(0, items.length - 1)];
      if (picked === undefined) throw new RangeError('nothing to pick from');
      return picked;
    },
    shuffled: (items) => {
      const deck = [...items];
      for (let last = deck.length - 1; last > 0; last -= 1) {
        const other = between(0, last);
        [deck[last], deck[other]] = [
          deck[other] as (typeof deck)[number],
          deck[last] as (typeof deck)[number],
        ];
      }
      return deck;
    },
  };
}
