// A definition as one running scan has it: each step at the revision that the scan has taken of it, with the parts
// that its first task has pinned.
import type { Definition, ReadSpec, Source, Step, StepPins } from '#sonar/contracts/definition.ts';

/** A scan's hold on a step. */
export interface HeldStep {
  step: string;
  /** The newest revision that the scan has taken of it; null: none yet. */
  revision: number | null;
  pins: StepPins | null;
  /** It is no longer in the definition and stays out of this scan. */
  removed: boolean;
}

export interface LiveDefinition extends Pick<Definition, 'name' | 'steps'> {
  /** Of the steps that have begun; grows as steps are pinned. */
  pins: Map<string, StepPins>;
}

type OutputSource = Extract<Source, { kind: 'output' }>;

/** A step of some revision with the parts that its scan has pinned. */
export const effectiveStep = (step: Step, pins: StepPins | null): Step =>
  pins === null
    ? step
    : {
        ...step,
        needs: pins.needs,
        foreach: pins.foreach,
        inputs: pins.inputs,
        outputs: step.outputs.filter(({ name }) => pins.outputs.includes(name)),
      };

/** Everything that the scan has taken, removed steps too; `rawStep` gives a step of a revision as it is written. */
export function liveDefinition(
  name: string,
  held: readonly HeldStep[],
  rawStep: (revision: number, step: string) => Step | undefined,
): LiveDefinition {
  const steps = held.flatMap(({ step, revision, pins }) => {
    const raw = revision === null ? undefined : rawStep(revision, step);
    return raw === undefined ? [] : [effectiveStep(raw, pins)];
  });
  const pins = held.flatMap((row) => (row.pins === null ? [] : [[row.step, row.pins] as const]));
  return { name, steps: inOrder(steps).steps, pins: new Map(pins) };
}

/** Steps after all that they need, otherwise as given; `circle`: those that can never come. */
export function inOrder(steps: readonly Step[]): { steps: Step[]; circle: Step[] } {
  const names = new Set(steps.map(({ name }) => name));
  const placed = new Set<string>();
  const ordered: Step[] = [];
  let rest = [...steps];
  while (rest.length > 0) {
    const waiting: Step[] = [];
    for (const step of rest) {
      if (step.needs.every((need) => placed.has(need.step) || !names.has(need.step))) {
        ordered.push(step);
        placed.add(step.name);
      } else waiting.push(step);
    }
    if (waiting.length === rest.length) return { steps: [...ordered, ...rest], circle: rest };
    rest = waiting;
  }
  return { steps: ordered, circle: [] };
}

/** What the step's first task pins. */
export const pinsOf = (step: Step, live: Pick<LiveDefinition, 'steps'>): StepPins => ({
  needs: step.needs,
  foreach: step.foreach,
  inputs: step.inputs,
  outputs: step.outputs.map(({ name }) => name),
  target: step.target,
  reads: sourcesOf(step).map((source) => ({
    step: source.step,
    output: source.output,
    read: readOf(live.steps, source),
  })),
});

/** Outputs of other steps that a step reads. */
const sourcesOf = (step: Pick<Step, 'foreach' | 'inputs'>): OutputSource[] =>
  [...(step.foreach === null ? [] : [step.foreach.in]), ...step.inputs.map(({ from }) => from)].filter(
    (source) => source.kind === 'output',
  );

/** How an output is read; null where there is no such output or it has no reader. */
export const readOf = (steps: readonly Step[], source: OutputSource): ReadSpec | null =>
  steps.find(({ name }) => name === source.step)?.outputs.find(({ name }) => name === source.output)?.read ??
  null;

/** How the rows of one of a step's sources were read when its first task pinned them. */
export const pinnedRead = (live: LiveDefinition, step: string, source: OutputSource): ReadSpec | null =>
  live.pins.get(step)?.reads.find((read) => read.step === source.step && read.output === source.output)
    ?.read ?? null;
