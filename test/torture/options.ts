import { parseArgs } from 'node:util';
import { type FaultKind, faultWeights } from './schedule.ts';

export interface TortureOptions {
  minutes: number;
  scans: number;
  seed: number;
  /** How long nothing may move, when the faults are over, before open scans count as stuck. */
  settleMinutes: number;
  /** Only these happen. */
  kinds: readonly FaultKind[];
  json: boolean;
  /** The folder with logs and data is kept even when all is well. */
  keep: boolean;
}

export const usage = `usage: npm run torture -- [--minutes M] [--scans N] [--seed S] [--settle-minutes M] [--json] [--keep]
  --minutes M         how long faults happen (default 20)
  --scans N           scans that are started meanwhile (default 40)
  --seed S            of the schedule and the scans (default: from the clock; it is printed)
  --settle-minutes M  how long nothing may move afterwards before scans count as stuck (default 3)
  --kinds A,B         only these faults happen (default all: ${Object.keys(faultWeights).join(', ')})
  --json              the last line is the result as JSON; progress goes to standard error
  --keep              keep the folder with logs and data`;

/** @throws Error that names the option that is wrong. */
export function parseOptions(words: readonly string[], now: number): TortureOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      minutes: { type: 'string', default: '20' },
      scans: { type: 'string', default: '40' },
      seed: { type: 'string' },
      'settle-minutes': { type: 'string', default: '3' },
      kinds: { type: 'string' },
      json: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
    },
  });
  return {
    minutes: numberOf('--minutes', values.minutes, 0, 24 * 60),
    scans: wholeNumberOf('--scans', values.scans, 1, 10_000),
    seed: wholeNumberOf('--seed', values.seed ?? String(now % 2 ** 31), 0, 2 ** 32 - 1),
    settleMinutes: numberOf('--settle-minutes', values['settle-minutes'], 0.1, 24 * 60),
    kinds: kindsOf(values.kinds),
    json: values.json,
    keep: values.keep,
  };
}

function numberOf(name: string, text: string, low: number, high: number): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= low && value <= high))
    throw new Error(`${name} ${text}: a number from ${low} to ${high} is wanted`);
  return value;
}

function kindsOf(text: string | undefined): FaultKind[] {
  const all = Object.keys(faultWeights) as FaultKind[];
  if (text === undefined) return all;
  return text.split(',').map((name) => {
    const kind = all.find((known) => known === name);
    if (kind === undefined) throw new Error(`--kinds ${name}: there are ${all.join(', ')}`);
    return kind;
  });
}

function wholeNumberOf(name: string, text: string, low: number, high: number): number {
  const value = numberOf(name, text, low, high);
  if (!Number.isInteger(value)) throw new Error(`${name} ${text}: a whole number is wanted`);
  return value;
}
