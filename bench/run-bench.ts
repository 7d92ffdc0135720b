// What every bench does around its measuring: a folder, a bound on its time, its answer as one line of JSON.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '#sonar/platform/errors.ts';

/** A whole number of the command line. */
export function countOf(words: Record<string, unknown>, name: string): number {
  const value = Number(words[name]);
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name}: give a whole number from 1`);
  return value;
}

/** Exits 0 when `measure` says that what it measured is right. */
export async function runBench(
  name: string,
  limitMs: number,
  measure: (directory: string, signal: AbortSignal) => Promise<{ right: boolean; figures: unknown }>,
): Promise<void> {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));
  const directory = mkdtempSync(join(tmpdir(), `sonar-bench-${name}-`));
  try {
    const signal = AbortSignal.any([interruption.signal, AbortSignal.timeout(limitMs)]);
    const { right, figures } = await measure(directory, signal);
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    process.exitCode = right ? 0 : 1;
  } catch (error) {
    process.stderr.write(`bench:${name}: ${messageOf(error)}\n`);
    process.exitCode = 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
