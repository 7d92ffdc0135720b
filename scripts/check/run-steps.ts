import { failed, type Outcome, type Step } from './step.ts';

/** Two, as the machines of the house have two cores; the heavy tools use more than one thread themselves. */
const stepsAtOnce = 2;

export interface StepResult {
  name: string;
  outcome: Outcome;
  seconds: number;
}

/** Runs every step, whatever the others say; `report` is called as each one ends. */
export async function runSteps(
  steps: readonly Step[],
  report: (result: StepResult) => void,
): Promise<StepResult[]> {
  const waiting = [...steps];
  const results: StepResult[] = [];
  const lane = async () => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      const start = performance.now();
      const outcome = await step.run().catch((error: unknown) => failed(describeFault(error)));
      const result = { name: step.name, outcome, seconds: (performance.now() - start) / 1000 };
      results.push(result);
      report(result);
    }
  };
  await Promise.all(Array.from({ length: stepsAtOnce }, lane));
  return results;
}

/** One line, and below it what a failed step has to say. */
export function describeStep({ name, outcome, seconds }: StepResult): string {
  const time = `${seconds.toFixed(1).padStart(6)} s`;
  switch (outcome.kind) {
    case 'passed':
      return `check  ok      ${name.padEnd(22)}${time}${outcome.note === undefined ? '' : `  ${outcome.note}`}`;
    case 'failed':
      return `check  FAILED  ${name.padEnd(22)}${time}\n${outcome.report.trimEnd().replaceAll(/^/gm, '    ')}\n`;
  }
}

/** A fault that somebody worded speaks for itself, with its causes; any other needs its stack. */
function describeFault(error: unknown): string {
  if (!Error.isError(error)) return String(error);
  if (error.name !== 'Error') return error.stack ?? error.message;
  return error.cause === undefined ? error.message : `${error.message}\n${describeFault(error.cause)}`;
}
