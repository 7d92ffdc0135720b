// A newer revision meets a running scan: for each step, whether the scan takes it, and what is told to people where
// it does not. Pure: the same revisions, pins and inputs always give the same answer.
import type { Definition, Step, StepPins } from '#sonar/contracts/definition.ts';
import { targetInput } from '#sonar/domain/step-inputs.ts';
import { effectiveStep, type HeldStep, inOrder } from './live-definition.ts';
import { type StepSurroundings, stepFaults } from './step-fits.ts';

type RevisionPart = Pick<Definition, 'steps' | 'files'>;

export interface MergedStep extends Pick<HeldStep, 'step' | 'revision' | 'removed'> {
  /** The scan had no such step. */
  isNew: boolean;
  /** Not begun, and what it needs is another: it begins like a new one. */
  restarts: boolean;
  /** What was not taken, and why. */
  note: string | null;
}

export type ScanInputs = Pick<StepSurroundings, 'inputs' | 'stored'>;

/** One revision's step, as the scan would run it. */
interface Version {
  step: Step;
  files: Definition['files'];
}

interface Candidate {
  name: string;
  held: HeldStep | undefined;
  removed: boolean;
  old: Version | null;
  next: Version | null;
  choice: 'next' | 'old' | 'none';
  notes: string[];
}

/**
 * The newest revision × what the scan has pinned × what it took last. Every step that the scan has keeps a version
 * that fits the versions of the others; where not everything fits, as few steps as possible stay behind.
 * @param inputs the scan's inputs and those that the revision gives a value
 */
export function mergeRevision(
  held: readonly HeldStep[],
  partOf: (revision: number) => RevisionPart,
  newest: { revision: number; definition: RevisionPart },
  inputs: ScanInputs,
): MergedStep[] {
  const merging = new Merging(candidatesOf(held, partOf, newest), newest.revision, inputs);
  merging.settle();
  return merging.candidates.map((candidate) => mergedOf(candidate, newest.revision));
}

function candidatesOf(
  held: readonly HeldStep[],
  partOf: (revision: number) => RevisionPart,
  { revision, definition }: { revision: number; definition: RevisionPart },
): Candidate[] {
  const rowOf = new Map(held.map((row) => [row.step, row]));
  const version = (part: RevisionPart, name: string, pins: StepPins | null): Version | null => {
    const step = part.steps.find((candidate) => candidate.name === name);
    return step === undefined ? null : { step: effectiveStep(step, pins), files: part.files };
  };
  const names = new Set([...held.map(({ step }) => step), ...definition.steps.map(({ name }) => name)]);
  return [...names].map((name) => {
    const row = rowOf.get(name);
    const pins = row?.pins ?? null;
    const old = row?.revision == null ? null : version(partOf(row.revision), name, pins);
    const written = definition.steps.find((step) => step.name === name);
    const removed = row?.removed === true || written === undefined;
    const candidate: Candidate = { name, held: row, removed, old, next: null, choice: 'none', notes: [] };
    if (removed || written === undefined) {
      candidate.choice = old === null ? 'none' : 'old';
      candidate.notes = [removedNote(row, written, revision)];
      return candidate;
    }
    candidate.next = version(definition, name, pins);
    candidate.choice = 'next';
    const fault = pins === null ? null : pinFault(written, pins);
    if (fault !== null) leave(candidate, revision, fault);
    else if (pins !== null) candidate.notes = changedPins(written, pins, revision);
    return candidate;
  });
}

const removedNote = (row: HeldStep | undefined, written: Step | undefined, revision: number): string =>
  row?.removed === true && written !== undefined
    ? `removed; revision ${revision} has it again, for new scans`
    : row?.removed === true
      ? 'removed'
      : `removed in revision ${revision}`;

/** What a scan that has begun the step cannot follow. */
function pinFault(written: Step, pins: StepPins): string | null {
  const missing = pins.outputs.find((name) => !written.outputs.some((output) => output.name === name));
  if (missing !== undefined) return `it has no output "${missing}", which this scan's tasks leave`;
  const file = targetInput(written);
  const same = JSON.stringify(written.target) === JSON.stringify(pins.target);
  if (pins.foreach?.batch != null && !same)
    return 'it has another target, and the batches of this scan were checked by the one before';
  if (file !== null && file !== targetInput({ target: pins.target }))
    return `its target is the file "${file}", which this scan made without that check`;
  return null;
}

function changedPins(written: Step, pins: StepPins, revision: number): string[] {
  const outputs = (names: string[]): string => names.toSorted().join();
  const changed = [
    ...(['needs', 'foreach', 'inputs'] as const).filter(
      (part) => JSON.stringify(written[part]) !== JSON.stringify(pins[part]),
    ),
    ...(outputs(written.outputs.map(({ name }) => name)) === outputs(pins.outputs) ? [] : ['outputs']),
  ];
  if (changed.length === 0) return [];
  return [
    `revision ${revision} changes its ${changed.join(', ')}, for new scans: this scan keeps what its first task began with`,
  ];
}

/** The newest revision is not taken: the last valid one stays, or there is none. */
function leave(candidate: Candidate, revision: number, why: string): void {
  candidate.choice = candidate.old === null ? 'none' : 'old';
  const stays = candidate.old === null ? '' : `; revision ${candidate.held?.revision ?? ''} stays in force`;
  candidate.notes = [`revision ${revision} was not taken: ${why}${stays}`];
}

class Merging {
  readonly candidates: readonly Candidate[];
  readonly #byName: ReadonlyMap<string, Candidate>;
  readonly #revision: number;
  readonly #inputs: ScanInputs;

  constructor(candidates: readonly Candidate[], revision: number, inputs: ScanInputs) {
    this.candidates = candidates;
    this.#byName = new Map(candidates.map((candidate) => [candidate.name, candidate]));
    this.#revision = revision;
    this.#inputs = inputs;
  }

  /** Each round leaves at least one step behind, or is the last. With all of them behind, everything fits. */
  settle(): void {
    let moved = true;
    while (moved) {
      moved = this.#breakCircles();
      for (const candidate of this.#inOrder()) moved = this.#fit(candidate) || moved;
    }
  }

  #chosen(name: string): Version | null {
    const candidate = this.#byName.get(name);
    return candidate === undefined || candidate.choice === 'none' ? null : candidate[candidate.choice];
  }

  #inOrder(): Candidate[] {
    const steps = this.candidates.flatMap(({ name }) => this.#chosen(name)?.step ?? []);
    return inOrder(steps).steps.flatMap(({ name }) => this.#byName.get(name) ?? []);
  }

  /** Steps that have begun keep their needs, so a circle always has one that may stay behind. */
  #breakCircles(): boolean {
    const { circle } = inOrder(this.candidates.flatMap(({ name }) => this.#chosen(name)?.step ?? []));
    let moved = false;
    for (const { name } of circle) {
      const candidate = this.#byName.get(name);
      if (candidate?.choice !== 'next' || candidate.held?.pins != null) continue;
      leave(candidate, this.#revision, 'with the steps that this scan has begun it would need itself');
      moved = true;
    }
    return moved;
  }

  #faults({ step, files }: Version): string[] {
    return stepFaults(step, {
      ...this.#inputs,
      files,
      stepOf: (name) => this.#chosen(name)?.step,
    });
  }

  /** @returns whether a step was left behind */
  #fit(candidate: Candidate): boolean {
    if (candidate.removed || candidate.choice === 'none') return false;
    const version = candidate[candidate.choice];
    const [fault] = version === null ? [] : this.#faults(version);
    if (fault === undefined) return false;
    if (candidate.choice === 'next') {
      const [oldFault] = candidate.old === null ? [] : this.#faults(candidate.old);
      // What the step was before does not fit either: then it is what it rests on that goes too far.
      if (oldFault !== undefined && this.#leaveNeeds(candidate, oldFault)) return true;
      leave(candidate, this.#revision, fault);
      return true;
    }
    return this.#leaveNeeds(candidate, fault);
  }

  #leaveNeeds({ name, old }: Candidate, fault: string): boolean {
    let moved = false;
    for (const need of old?.step.needs ?? []) {
      const upstream = this.#byName.get(need.step);
      if (upstream?.choice !== 'next' || upstream.old === null) continue;
      leave(upstream, this.#revision, `the step "${name}" of this scan rests on what it was: ${fault}`);
      moved = true;
    }
    return moved;
  }
}

function mergedOf(candidate: Candidate, revision: number): MergedStep {
  const { name, held, removed, choice, old, next } = candidate;
  const needs = (version: Version | null): string => JSON.stringify(version?.step.needs ?? null);
  return {
    step: name,
    isNew: held === undefined,
    removed,
    revision: choice === 'next' ? revision : choice === 'old' ? (held?.revision ?? null) : null,
    restarts: choice === 'next' && held !== undefined && held.pins === null && needs(old) !== needs(next),
    note: candidate.notes.length === 0 ? null : candidate.notes.join('; '),
  };
}
