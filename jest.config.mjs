import { existsSync } from 'node:fs';
import { join } from 'node:path';

// jest ignores a project's `testTimeout`, so each project's limit is a setup file; `maxWorkers` counts only
// here at the root. A project with `stack` shares one local stack a run: jest starts each distinct
// globalSetup of the selected projects once, so `--selectProjects unit` starts nothing.
const projects = {
  unit: { limit: '10-seconds', stack: false },
  flow: { limit: '60-seconds', stack: true },
  workflow: { limit: '60-seconds', stack: false },
  replay: { limit: '60-seconds', stack: false },
  contract: { limit: '60-seconds', stack: true },
  e2e: { limit: '5-minutes', stack: true },
  stack: { limit: '5-minutes', stack: false },
  torture: { limit: '10-minutes', stack: false },
  browser: { limit: '5-minutes', stack: false },
};

// CI installs a Chromium and must use it; elsewhere the pages are looked at where there is one.
const hasChromium = (process.env.PATH ?? '')
  .split(':')
  .some((folder) =>
    ['chromium', 'chromium-browser', 'google-chrome'].some((name) => existsSync(join(folder, name))),
  );
if (!hasChromium && !process.env.CI) {
  delete projects.browser;
  process.stderr.write('jest: no Chromium on PATH, so the project "browser" is left out\n');
}

const sharedStack = {
  globalSetup: '<rootDir>/test/setup/global-setup.ts',
  globalTeardown: '<rootDir>/test/setup/global-teardown.ts',
};

// jest loads CommonJS: the transform turns the modules of this project into it.
const transform = {
  '^.+\\.ts$': [
    '@swc/jest',
    {
      swcrc: false,
      jsc: { parser: { syntax: 'typescript', decorators: false }, target: 'es2024' },
      module: { type: 'commonjs' },
      sourceMaps: 'inline',
    },
  ],
};

export default {
  maxWorkers: 2,
  collectCoverage: false,
  projects: Object.entries(projects).map(([name, { limit, stack }]) => ({
    displayName: name,
    rootDir: import.meta.dirname,
    roots: ['<rootDir>/test', '<rootDir>/src'],
    testMatch: [`<rootDir>/test/${name}/**/*.test.ts`],
    modulePathIgnorePatterns: ['<rootDir>/test/boundaries/'],
    testEnvironment: 'node',
    transform,
    setupFilesAfterEnv: [`<rootDir>/test/setup/timeout-${limit}.ts`],
    ...(stack && existsSync(`${import.meta.dirname}/test/setup/global-setup.ts`) ? sharedStack : {}),
  })),
};
