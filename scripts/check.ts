// `npm run check`: every proof of the house that needs no service. Exit 1 when one fails.
import { describeStep, runSteps } from './check/run-steps.ts';
import { checkSteps } from './check/steps.ts';
import { endGroupsOnSignals } from './process-group.ts';

const endedBySignal = endGroupsOnSignals(2_000, async () => {});
const start = performance.now();
const results = await runSteps(checkSteps, (result) => {
  if (!endedBySignal()) console.log(describeStep(result));
});
if (endedBySignal()) await new Promise<never>(() => {});
const failures = results.filter(({ outcome }) => outcome.kind === 'failed').map(({ name }) => name);
const seconds = ((performance.now() - start) / 1000).toFixed(1);
console.log(
  failures.length === 0
    ? `check  ${results.length} steps passed in ${seconds} s`
    : `check  failed in ${seconds} s: ${failures.join(', ')}`,
);
process.exitCode = failures.length === 0 ? 0 : 1;
