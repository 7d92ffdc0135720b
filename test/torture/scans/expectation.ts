// What is known of a scan before it runs: how it ends, which tasks it has, and what they observe.
import { createHash } from 'node:crypto';
import type { ScanStatus, TaskStatus } from '#sonar/contracts/states.ts';

export interface ExpectedTask {
  step: string;
  /** As the oracle writes an item: a text, the host or the address of a row, null without one. */
  item: string | null;
  /** Any of these; a scan that is cancelled cannot know. */
  ends: readonly TaskStatus[];
  noWork: boolean;
  /** What it observes, each once; nothing while it is Cancelled. */
  says: readonly string[];
  /** What it observes is of a command that failed. */
  partial: boolean;
  /** Results that were accepted for it, retries included; undefined where faults may add some. */
  results?: number;
}

export interface Expectation {
  ends: readonly ScanStatus[];
  tasks: readonly ExpectedTask[];
  /** What the tasks of a step observe together, where nobody knows which of them. */
  together: Readonly<Record<string, readonly string[]>>;
}

export const completed = (step: string, item: string | null, says = [item ?? '-']): ExpectedTask => ({
  step,
  item,
  ends: ['Completed'],
  noWork: false,
  says,
  partial: false,
});

export const noWork = (step: string): ExpectedTask => ({ ...completed(step, null, []), noWork: true });

export const failed = (
  step: string,
  item: string | null,
  more: Partial<Pick<ExpectedTask, 'says' | 'partial' | 'results'>> = {},
): ExpectedTask => ({ ...completed(step, item, []), ends: ['Failed'], ...more });

/** What `act.sh digest` says of these lines, whatever order they came in. */
export function digestOf(lines: readonly string[]): string {
  const sorted = lines.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return createHash('sha256')
    .update(sorted.map((line) => `${line}\n`).join(''))
    .digest('hex')
    .slice(0, 16);
}

/** The line that `act.sh` prints for an item. */
export const lineOf = (scan: string, step: string, said: string): string =>
  JSON.stringify({ url: `http://127.0.0.1/${scan}/${step}/${said}`, host: said });
