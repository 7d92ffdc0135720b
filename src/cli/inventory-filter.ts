// The options that say which records: the same for lists and exports.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { namePattern } from '#sonar/contracts/names.ts';
import type { InventoryQuery } from './api-client.ts';
import { gathered } from './word-parsers.ts';

export const exportFormats = ['jsonl', 'csv'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export interface FilterOptions {
  type?: string;
  definition?: string;
  contains?: string;
  field?: string[];
  seenSince?: string;
  seenBefore?: string;
  newSince?: string;
  partial?: boolean;
}

export function addFilterOptions(command: Command): Command {
  return command
    .addOption(typeOption('only records of this type; "sonar inventory types" shows them'))
    .option('--definition <name>', 'only what scans of this definition saw')
    .option('--contains <text>', 'only keys that hold this text, in any case')
    .option('--field <name=value>', 'only those whose field has this value; may be repeated', fieldPair)
    .option('--seen-since <time>', 'last seen then or later: a time, or an age as 7d or 12h', timeWord)
    .option('--seen-before <time>', 'not seen any more since then', timeWord)
    .option('--new-since <time>', 'first seen then or later', timeWord)
    .option('--partial', 'only what nothing but failed commands has shown')
    .option('--no-partial', 'without these');
}

export const typeOption = (help: string): Option =>
  new Option('--type <type>', help).argParser((word: string) => {
    if (!namePattern.test(word)) throw new InvalidArgumentError('Give the name of a record type, as domain.');
    return word;
  });

export function filterOf({ partial, ...options }: FilterOptions): InventoryQuery {
  return {
    ...pick(options, ['type', 'definition', 'contains', 'field', 'seenSince', 'seenBefore', 'newSince']),
    ...(partial === undefined ? {} : { partial: partial ? 'true' : 'false' }),
  };
}

const pick = <Key extends keyof FilterOptions>(
  options: FilterOptions,
  keys: readonly Key[],
): Pick<FilterOptions, Key> =>
  Object.fromEntries(
    keys.filter((key) => options[key] !== undefined).map((key) => [key, options[key]]),
  ) as Pick<FilterOptions, Key>;

function fieldPair(word: string, before: string[] | undefined): string[] {
  if (!/^[^=]+=/.test(word)) throw new InvalidArgumentError('Write it as status=200.');
  return gathered(word, before);
}

const units: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** ISO 8601 in UTC of a time, a date, or an age before now. */
function timeWord(word: string): string {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(word) ?? [];
  if (count !== '') return new Date(Date.now() - Number(count) * (units[unit] ?? 0)).toISOString();
  const time = /^\d{4}-\d{2}-\d{2}(T|$)/.test(word) ? Date.parse(word) : Number.NaN;
  if (!Number.isNaN(time)) return new Date(time).toISOString();
  throw new InvalidArgumentError('Give 2026-01-31, 2026-01-31T12:00:00Z, or an age as 7d, 12h, 30m or 10s.');
}
