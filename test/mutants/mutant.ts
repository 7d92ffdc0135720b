// A mutant is a patch that breaks one invariant by hand. Its head says which, and names the test that must go red:
//
//   invariant: a result counts once
//   test: flow test/flow/accept-result.test.ts
//   name: the same result again is a duplicate
//
//   diff --git …
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

export interface Mutant {
  /** The patch's file name without its ending. */
  id: string;
  invariant: string;
  project: string;
  /** Path in the checkout. */
  testFile: string;
  /** Full name of the test, or the beginning of it where it ends in `…`. */
  testName: string;
  patch: string;
}

const head =
  /^invariant: (?<invariant>.+)\ntest: (?<project>\w+) (?<testFile>\S+)\nname: (?<testName>.+)\n\n/;

export function readMutants(folder: string = import.meta.dirname): Mutant[] {
  return globSync('*.patch', { cwd: folder })
    .toSorted()
    .map((file) => readMutant(join(folder, file)));
}

function readMutant(path: string): Mutant {
  const text = readFileSync(path, 'utf8');
  const { invariant, project, testFile, testName } = head.exec(text)?.groups ?? {};
  if (!invariant || !project || !testFile || !testName)
    throw new Error(`${path} does not begin with the lines "invariant: …", "test: PROJECT FILE", "name: …"`);
  return { id: basename(path, '.patch'), invariant, project, testFile, testName, patch: path };
}

export function isNamedTest(mutant: Mutant, fullName: string): boolean {
  const { testName } = mutant;
  return testName.endsWith('…') ? fullName.startsWith(testName.slice(0, -1)) : fullName === testName;
}
