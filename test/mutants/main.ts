// `npm run test:mutants [-- NAME…]`: breaks one invariant at a time in a copy of the checkout and demands that the test
// named for it goes red, and that it is green when nothing is broken. Prints the pairs; exits 0 only when all are caught.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startStack } from '#sonar/stack/stack.ts';
import { endGroupsOnSignals } from '../../scripts/process-group.ts';
import { applyPatch, copyCheckout } from './checkout-copy.ts';
import { greenTests, judgeMutant, type Verdict } from './judge-mutant.ts';
import { isNamedTest, type Mutant, readMutants } from './mutant.ts';

const asked = process.argv.slice(2);
const mutants = readMutants().filter(({ id }) => asked.length === 0 || asked.includes(id));
const unknown = asked.filter((name) => !mutants.some(({ id }) => id === name));
if (unknown.length > 0) {
  console.error(`test:mutants: there is no test/mutants/${unknown[0]}.patch`);
  process.exit(2);
}

const directory = mkdtempSync(join(tmpdir(), 'sonar-mutants-stack-'));
// One stack for all: each run of jest then starts none of its own.
const stack = await startStack({ dataDir: directory, temporalUi: false });
const end = async (): Promise<void> => {
  await stack.stop();
  rmSync(directory, { recursive: true, force: true });
};
endGroupsOnSignals(5_000, end);
for (const [name, value] of Object.entries(stack.env))
  process.env[`SONAR_TEST_${name.replace(/^SONAR_/, '')}`] = value;

/** Green tests of each file while nothing is broken. */
const greenOf = new Map<string, string[]>();
let bad = 0;
try {
  await using copy = await copyCheckout();
  for (const mutant of mutants) {
    const verdict = await tryMutant(copy.folder, mutant);
    if (verdict.kind !== 'caught') bad += 1;
    console.log(lineOf(mutant, verdict));
  }
} finally {
  await end();
}
console.log(`${mutants.length - bad} of ${mutants.length} mutants caught`);
process.exit(bad === 0 && mutants.length > 0 ? 0 : 1);

async function tryMutant(folder: string, mutant: Mutant): Promise<Verdict> {
  let green = greenOf.get(mutant.testFile);
  if (green === undefined) {
    green = await greenTests(folder, mutant);
    greenOf.set(mutant.testFile, green);
  }
  if (!green.some((name) => isNamedTest(mutant, name)))
    return { kind: 'not_run', reason: 'no green test has this name when nothing is broken' };
  await applyPatch(folder, mutant.patch);
  try {
    return await judgeMutant(folder, mutant);
  } finally {
    await applyPatch(folder, mutant.patch, true);
  }
}

function lineOf(mutant: Mutant, verdict: Verdict): string {
  const pair = `${mutant.id}: ${mutant.invariant} → ${mutant.testFile}: ${mutant.testName}`;
  if (verdict.kind === 'not_run') return `NOT RUN   ${pair}\n          ${verdict.reason}`;
  return `${verdict.kind === 'caught' ? 'caught   ' : 'SURVIVED '} ${pair}`;
}
