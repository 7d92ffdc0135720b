import { safeText } from './safe-text.ts';

/** Lines of names and values; what has no value is left out. */
export function facts(pairs: readonly (readonly [name: string, value: string | null])[]): string[] {
  return pairs.flatMap(([name, value]) => (value ? [`${name.padEnd(12)} ${safeText(value)}`] : []));
}
