// Parsers of single words of a command line; commander tells their faults with the option's name.
import { type Command, InvalidArgumentError } from 'commander';
import { uuidPattern } from '#sonar/contracts/ids.ts';
import { parseDuration } from '#sonar/definition/duration.ts';

export interface PageOptions {
  limit: number;
  after?: string;
}

/** `--limit` and `--after` of a list. */
export function addPageOptions(command: Command): Command {
  return command
    .option('--limit <n>', 'at most so many', positiveInteger, 100)
    .option('--after <cursor>', 'go on after the "next" of a list before');
}

export function positiveInteger(word: string): number {
  const value = Number(word);
  if (!/^\d+$/.test(word) || value < 1 || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('Give a whole number from 1.');
  return value;
}

/** Milliseconds of `90s`, `30m` or `1h30m`. */
export function duration(word: string): number {
  const value = parseDuration(word);
  if (value === null) throw new InvalidArgumentError('Give a duration like 90s, 30m or 6h.');
  return value;
}

export function wholeNumber(word: string): number {
  const value = Number(word);
  if (!/^\d+$/.test(word) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('Give a whole number from 0.');
  return value;
}

/** 0 lets the system choose. */
export function portNumber(word: string): number {
  const value = Number(word);
  if (!/^\d{1,5}$/.test(word) || value > 65_535)
    throw new InvalidArgumentError('Give a port from 0 to 65535.');
  return value;
}

/** A scan's id, or `latest`. */
export function scanId(word: string): string {
  if (word !== 'latest' && !uuidPattern.test(word))
    throw new InvalidArgumentError('Give the id of a scan, or latest; "sonar scan list" shows them.');
  return word;
}

/** Words between commas. */
export function wordList(text: string): string[] {
  const words = text.split(',').map((word) => word.trim());
  if (words.includes('')) throw new InvalidArgumentError('Give words with commas between them.');
  return words;
}

/** Gathers an option that may be given several times. */
export function gathered(word: string, before: string[] | undefined): string[] {
  return [...(before ?? []), word];
}
