import { type JestResults, summarizeProjects, tallyOf } from '../../scripts/test/jest-results.ts';

const file = (name: string, seconds: number, ...statuses: string[]): JestResults['testResults'][number] => ({
  name,
  startTime: 1_000,
  endTime: 1_000 + seconds * 1_000,
  assertionResults: statuses.map((status) => ({ status })),
});

const results: JestResults = {
  numPassedTests: 3,
  numFailedTests: 1,
  numPendingTests: 1,
  numTodoTests: 0,
  numRuntimeErrorTestSuites: 1,
  testResults: [
    file('/t/unit/a.test.ts', 2, 'passed', 'passed', 'pending'),
    file('/t/flow/deep/b.test.ts', 1, 'passed', 'failed'),
    file('/t/unit/broken.test.ts', 0),
  ],
};

test('a file that could not be loaded counts as a failure, a skipped test as nothing', () => {
  expect(tallyOf(results)).toEqual({ passed: 3, failed: 2 });
});

test('files are summed up by the project they stand in', () => {
  expect(summarizeProjects(results, '/t')).toEqual([
    { project: 'unit', files: 2, passed: 2, failed: 0, seconds: 2 },
    { project: 'flow', files: 1, passed: 1, failed: 1, seconds: 1 },
  ]);
});
