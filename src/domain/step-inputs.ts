// What a step reads of files: which of its inputs Sonar makes, and whose they are.
import type { Definition, Source, Step, StepInputSpec, Template } from '#sonar/contracts/definition.ts';
import { batchInput, fileInput, itemInput } from '#sonar/contracts/names.ts';

/** Whether a step has one parent task of the step that a source names. */
export const isOfParent = (step: Pick<Step, 'needs'>, from: Source): boolean =>
  from.kind === 'output' && step.needs.some((need) => need.step === from.step && need.mode === 'single');

/** Inputs that are no files of tasks as they are: made once for each owner before a task is placed. */
export const madeInputs = (step: Step): StepInputSpec[] =>
  step.inputs.filter(({ from, as }) => {
    if (as === 'directory') return false;
    return as !== 'file' || !isOfParent(step, from);
  });

/** Whose an input is: one file is made for each. */
export function inputOwner(step: Step, input: StepInputSpec): 'scan' | 'parent' | 'sources' {
  if (input.from.kind === 'input') return 'scan';
  return isOfParent(step, input.from) ? 'parent' : 'sources';
}

/** The input whose lines are the step's targets, where its `target` is a file. */
export function targetInput(step: Pick<Step, 'target'>): string | null {
  const [only] = step.target ?? [];
  return only?.kind === 'in' ? only.name : null;
}

interface DispatchedInput {
  name: string;
  as: 'file' | 'directory';
  /** Of its whole content, where many tasks share it. */
  digest?: string;
}

/** Everything that a worker fetches for a task of the step. */
export function dispatchedInputs(step: Step, files: Definition['files']): DispatchedInput[] {
  const { foreach } = step;
  const formOf = (as: string): 'file' | 'directory' => (as === 'directory' ? 'directory' : 'file');
  return [
    ...step.inputs.map(({ name, as }) => ({ name, as: formOf(as) })),
    ...(foreach?.batch ? [{ name: batchInput, as: formOf(foreach.batch.as) }] : []),
    ...(foreach?.files && !foreach.batch ? [{ name: itemInput, as: 'file' as const }] : []),
    ...namesOf(step, 'file').map((name) => ({
      name: fileInput(name),
      as: formOf(files[name]?.kind ?? 'file'),
      ...(files[name] === undefined ? {} : { digest: files[name].digest }),
    })),
  ];
}

/** Inputs of the scan that the step's templates and its target name. */
export const scanInputsOf = (step: Step): string[] => namesOf(step, 'inputs');

/** Those, and the texts that go into a file as they are. Lists are streamed: they are not among these. */
export const scanInputsRead = (step: Step): string[] => [
  ...scanInputsOf(step),
  ...step.inputs.flatMap(({ from, as }) => (from.kind === 'input' && as === 'file' ? [from.input] : [])),
];

function namesOf(step: Step, kind: 'file' | 'inputs'): string[] {
  const templates: Template[] = [
    ...step.command,
    ...Object.values(step.env),
    ...(step.stdin ? [step.stdin] : []),
    ...(step.target ? [step.target] : []),
  ];
  return [...new Set(templates.flat().flatMap((part) => (part.kind === kind ? [part.name] : [])))];
}
