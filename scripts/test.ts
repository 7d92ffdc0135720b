// `npm test`: the check, then jest with the arguments given here. The last line is `N passed, N failed`, check
// steps included; the exit code is 0 only when nothing failed and at least one test ran.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeStep, runSteps } from './check/run-steps.ts';
import { checkSteps } from './check/steps.ts';
import { inCheckout } from './checkout.ts';
import { endGroupsOnSignals } from './process-group.ts';
import { kill, type StrayProcess, strayProcesses } from './stray-processes.ts';
import { summarizeProjects, type Tally, tallyOf } from './test/jest-results.ts';
import { runJest } from './test/run-jest.ts';

const defaultLimitMinutes = 45;
/** Helpers that watch over services notice their parent's end within a second or two. */
const strayGraceMs = 5_000;

const runId = randomUUID();
const tally: Tally = { passed: 0, failed: 0 };

const endedBySignal = endGroupsOnSignals(10_000, async (signal) => {
  for (const stray of await lingeringStrays()) kill(stray);
  complain(`ended by ${signal}`);
  printTally();
});

const steps = await runSteps(checkSteps, (result) => {
  if (!endedBySignal()) console.log(describeStep(result));
});
for (const { outcome } of steps) tally[outcome.kind] += 1;

const limitMinutes = Number(process.env.SONAR_TEST_LIMIT_MINUTES ?? defaultLimitMinutes);
const { results, complaints } = await runJest(process.argv.slice(2), runId, limitMinutes * 60_000);
if (endedBySignal()) await new Promise<never>(() => {});
complaints.forEach(complain);
if (results !== null) {
  const { passed, failed } = tallyOf(results);
  tally.passed += passed;
  tally.failed += failed;
  if (passed + failed === 0) complain('no test was executed');
  console.log();
  for (const project of summarizeProjects(results, inCheckout('test'))) {
    console.log(
      `test   ${project.project.padEnd(10)}${String(project.files).padStart(4)} files${String(project.passed).padStart(6)} passed` +
        `${String(project.failed).padStart(5)} failed${project.seconds.toFixed(1).padStart(8)} s`,
    );
  }
  const skipped = results.numPendingTests + results.numTodoTests;
  if (skipped > 0) console.log(`test   ${skipped} skipped`);
}
for (const stray of await lingeringStrays()) {
  complain(`left running: ${stray.pid} ${stray.command.slice(0, 160)}`);
  kill(stray);
}
printTally();
process.exit(tally.failed === 0 ? 0 : 1);

/** What of this run is still there after a moment's grace. */
async function lingeringStrays(): Promise<StrayProcess[]> {
  const deadline = performance.now() + strayGraceMs;
  let strays = strayProcesses(runId);
  while (strays.length > 0 && performance.now() < deadline) {
    await sleep(200);
    strays = strayProcesses(runId);
  }
  return strays;
}

function complain(what: string): void {
  tally.failed += 1;
  console.log(`test   FAILED  ${what}`);
}

function printTally(): void {
  console.log(`${tally.passed} passed, ${tally.failed} failed`);
}
