/**
 * `lost`: something that had to be there is not, or came to another end. `duplicated`: something happened twice.
 * `stuck`: it never ended. `leaked`: something was left behind.
 */
export type FindingKind = 'lost' | 'duplicated' | 'stuck' | 'leaked';

export interface Finding {
  kind: FindingKind;
  /** With every id that helps to look it up. */
  what: string;
}

/** How many of each: what `one` has more or fewer of than `other`, by name. */
export function differences(
  expected: readonly string[],
  found: readonly string[],
): { missing: string[]; extra: string[] } {
  const counts = new Map<string, number>();
  for (const name of expected) counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const name of found) counts.set(name, (counts.get(name) ?? 0) - 1);
  const names = (sign: number): string[] =>
    [...counts].flatMap(([name, count]) =>
      Math.sign(count) === sign ? Array<string>(Math.abs(count)).fill(name) : [],
    );
  return { missing: names(1), extra: names(-1) };
}
