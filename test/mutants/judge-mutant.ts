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

const longestTrouble = 2_000;

interface Results {
  testResults: {
    message: string;
    assertionResults: SeenTest[];
  }[];
}

interface SeenTest {
  fullName: string;
  status: string;
}

/** Runs the mutant's test in `folder`, which holds the broken copy. */
export async function judgeMutant(folder: string, mutant: Mutant): Promise<Verdict> {
  const { tests, trouble } = await runTests(folder, mutant, [
    '--testNamePattern',
    patternOf(mutant.testName),
  ]);
  const statuses = tests.filter(({ fullName }) => isNamedTest(mutant, fullName)).map(({ status }) => status);
  if (statuses.includes('failed')) return { kind: 'caught' };
  if (statuses.includes('passed')) return { kind: 'survived' };
  return { kind: 'not_run', reason: trouble === '' ? 'no test has this name' : trouble };
}

/** The tests of the mutant's file that are green in `folder`, which holds the whole copy. */
export async function greenTests(folder: string, mutant: Mutant): Promise<string[]> {
  const { tests } = await runTests(folder, mutant, []);
  return tests.filter(({ status }) => status === 'passed').map(({ fullName }) => fullName);
}

async function runTests(
  folder: string,
  { project, testFile }: Pick<Mutant, 'project' | 'testFile'>,
  args: readonly string[],
): Promise<{ tests: SeenTest[]; trouble: string }> {
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
        project,
        ...args,
        '--runTestsByPath',
        testFile,
      ],
      folder,
    );
    const results = readResults(outputFile);
    if (!results)
      return { tests: [], trouble: `jest wrote no results: ${jest.output.slice(-longestTrouble)}` };
    return {
      tests: results.testResults.flatMap((file) => file.assertionResults),
      trouble: results.testResults
        .map((file) => file.message)
        .join('\n')
        .slice(0, longestTrouble),
    };
  } finally {
    rmSync(outputs, { recursive: true, force: true });
  }
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
