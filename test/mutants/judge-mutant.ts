import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../scripts/check/tool.ts';
import { isNamedTest, type Mutant } from './mutant.ts';

export type Verdict =
  | { kind: 'caught' }
  /** The named test passed although the invariant is broken. */
  | { kind: 'survived' }
  /** Nothing can be said: the test was not found, or its file could not even be loaded. */
  | { kind: 'not_run'; reason: string };

interface Results {
  testResults: {
    message: string;
    assertionResults: { fullName: string; status: string }[];
  }[];
}

/** Runs the mutant's test in `folder`, which holds the broken copy. */
export async function judgeMutant(folder: string, mutant: Mutant): Promise<Verdict> {
  const outputs = mkdtempSync(join(tmpdir(), 'sonar-mutant-results-'));
  const outputFile = join(outputs, 'results.json');
  try {
    const jest = await run(
      process.execPath,
      [
        join(folder, 'node_modules/jest/bin/jest.js'),
        '--json',
        `--outputFile=${outputFile}`,
        '--selectProjects',
        mutant.project,
        '--testNamePattern',
        patternOf(mutant.testName),
        '--runTestsByPath',
        mutant.testFile,
      ],
      folder,
    );
    return verdictOf(mutant, readResults(outputFile), jest.output);
  } finally {
    rmSync(outputs, { recursive: true, force: true });
  }
}

function verdictOf(mutant: Mutant, results: Results | undefined, output: string): Verdict {
  if (!results) return { kind: 'not_run', reason: `jest wrote no results: ${output.slice(-2_000)}` };
  const statuses = results.testResults
    .flatMap((file) => file.assertionResults)
    .filter(({ fullName }) => isNamedTest(mutant, fullName))
    .map(({ status }) => status);
  if (statuses.includes('failed')) return { kind: 'caught' };
  if (statuses.includes('passed')) return { kind: 'survived' };
  const message = results.testResults.map((file) => file.message).join('\n');
  return { kind: 'not_run', reason: message === '' ? 'no test has this name' : message.slice(0, 2_000) };
}

function readResults(file: string): Results | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Results;
  } catch {
    return undefined;
  }
}

function patternOf(testName: string): string {
  const whole = !testName.endsWith('…');
  const literal = (whole ? testName : testName.slice(0, -1)).replaceAll(
    /[\\^$.*+?()[\]{}|]/g,
    String.raw`\$&`,
  );
  return `^${literal}${whole ? '$' : ''}`;
}
