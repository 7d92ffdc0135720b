import { relative, sep } from 'node:path';

/** The part of jest's `--json` output that is read here. */
export interface JestResults {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  numRuntimeErrorTestSuites: number;
  testResults: { name: string; startTime: number; endTime: number; assertionResults: { status: string }[] }[];
}

export interface ProjectSummary {
  project: string;
  files: number;
  passed: number;
  failed: number;
  /** Time of its files added up; two of them run at once. */
  seconds: number;
}

/** A test file stands in test/PROJECT. */
export function summarizeProjects(results: JestResults, testFolder: string): ProjectSummary[] {
  const byProject = Map.groupBy(
    results.testResults,
    ({ name }) => relative(testFolder, name).split(sep)[0] ?? '',
  );
  return [...byProject].map(([project, files]) => {
    const count = (status: string) =>
      files.flatMap(({ assertionResults }) => assertionResults).filter((test) => test.status === status)
        .length;
    return {
      project,
      files: files.length,
      passed: count('passed'),
      failed: count('failed'),
      seconds: files.reduce((sum, { startTime, endTime }) => sum + (endTime - startTime) / 1000, 0),
    };
  });
}

export interface Tally {
  passed: number;
  failed: number;
}

/** A file that could not even be loaded counts as one failure. */
export function tallyOf(results: JestResults): Tally {
  return {
    passed: results.numPassedTests,
    failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
  };
}
