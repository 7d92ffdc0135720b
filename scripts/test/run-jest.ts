import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkout, inCheckout } from '../checkout.ts';
import { ProcessGroup } from '../process-group.ts';
import { runMark } from '../stray-processes.ts';
import type { JestResults } from './jest-results.ts';

/** jest writes its results when all is torn down; open handles may still keep it alive, and nothing waits for them. */
const exitGraceMs = 20_000;
const endGraceMs = 15_000;

export interface JestRun {
  /** Null when jest ended before it could write any. */
  results: JestResults | null;
  /** What went wrong beside the tests themselves. */
  complaints: string[];
}

/** Runs jest with `args`, its report on this terminal; ends it when `limitMs` is over. */
export async function runJest(args: readonly string[], runId: string, limitMs: number): Promise<JestRun> {
  const folder = mkdtempSync(join(tmpdir(), 'sonar-test-'));
  const outputFile = join(folder, 'results.json');
  try {
    const jest = new ProcessGroup(
      process.execPath,
      [inCheckout('node_modules/jest/bin/jest.js'), '--json', `--outputFile=${outputFile}`, ...args],
      {
        cwd: checkout,
        env: { ...process.env, [runMark]: runId, NODE_OPTIONS: nodeOptions() },
        output: 'inherit',
      },
    );
    const limit = await endInTime(jest, outputFile, limitMs);
    const { code, signal, error } = await jest.ended;
    jest.signal('SIGKILL');
    const results = existsSync(outputFile)
      ? (JSON.parse(readFileSync(outputFile, 'utf8')) as JestResults)
      : null;
    const complaints = [
      ...(limit === null ? [] : [limit]),
      ...(error ? [`jest could not be run: ${error.message}`] : []),
      ...(results === null && limit === null
        ? [`jest ended with ${signal ?? code} before it had results`]
        : []),
    ];
    // A red test explains the exit code; without one, something else must.
    if (
      results !== null &&
      code !== 0 &&
      limit === null &&
      results.numFailedTests + results.numRuntimeErrorTestSuites === 0
    ) {
      complaints.push(`jest ended with ${signal ?? code} though no test failed`);
    }
    return { results, complaints };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Waits for the end; past a limit it ends the group and says which limit that was. */
async function endInTime(jest: ProcessGroup, outputFile: string, limitMs: number): Promise<string | null> {
  const deadline = performance.now() + limitMs;
  let written: number | null = null;
  const over = jest.ended.then(() => true);
  while (!(await Promise.race([over, sleep(250, false)]))) {
    const now = performance.now();
    if (written === null && existsSync(outputFile)) written = now;
    if (now > deadline) {
      await jest.end(endGraceMs);
      return `jest was ended: the limit of ${Math.round(limitMs / 60_000)} minutes for the whole run was over`;
    }
    if (written !== null && now - written > exitGraceMs) {
      await jest.end(endGraceMs);
      return 'jest had its results but did not exit: a test left something open';
    }
  }
  return null;
}

function nodeOptions(): string {
  return [process.env.NODE_OPTIONS, '--disable-warning=ExperimentalWarning'].filter(Boolean).join(' ');
}
