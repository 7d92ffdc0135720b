const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;
/** A year: beyond it a duration is a slip of the hand. */
const maxDurationMs = 366 * unitMs.d;

/**
 * Milliseconds of `500ms`, `30s`, `30m`, `1h30m`, `2d`: whole numbers with units, the larger unit first,
 * no spaces. Null for anything else and for more than a year.
 */
export function parseDuration(text: string): number | null {
  const parts = /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m(?!s))?(?:(\d{1,9})s)?(?:(\d{1,12})ms)?$/.exec(
    text,
  );
  if (parts === null || text === '') return null;
  const [, d, h, m, s, ms] = parts;
  const total =
    Number(d ?? 0) * unitMs.d +
    Number(h ?? 0) * unitMs.h +
    Number(m ?? 0) * unitMs.m +
    Number(s ?? 0) * unitMs.s +
    Number(ms ?? 0);
  return total <= maxDurationMs ? total : null;
}
