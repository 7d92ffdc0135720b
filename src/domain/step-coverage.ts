// Whether a step of a scan has looked at all that it was given: only then does what it did not show say anything.
import type { StepState, TaskStatus } from '#sonar/contracts/states.ts';

export interface StepFacts {
  state: StepState;
  /** Steps it needs. */
  needs: readonly string[];
  /** Tasks by status, superseded ones left out. */
  tasks: ReadonlyMap<TaskStatus, number>;
  removed: boolean;
  badRecords: boolean;
}

/**
 * Step → why it is not wholly completed; wholly completed steps are left out. What a step needs is a part of it: a child
 * that was never made looked at nothing. Poisoned results and partial outputs are Failed tasks.
 */
export function incompleteSteps(steps: ReadonlyMap<string, StepFacts>): Map<string, string> {
  const reasons = new Map<string, string | null>();
  const reasonOf = (name: string): string | null => {
    const known = reasons.get(name);
    if (known !== undefined) return known;
    // A ring cannot be compiled; should there be one, it ends here.
    reasons.set(name, null);
    const facts = steps.get(name);
    const reason = facts === undefined ? 'is no step of it' : (ownReason(facts) ?? neededReason(facts));
    reasons.set(name, reason);
    return reason;
  };
  const neededReason = ({ needs }: StepFacts): string | null => {
    for (const need of needs) {
      const reason = reasonOf(need);
      if (reason !== null) return `needs \`${need}\`, which ${reason}`;
    }
    return null;
  };
  const incomplete = new Map<string, string>();
  for (const name of steps.keys()) {
    const reason = reasonOf(name);
    if (reason !== null) incomplete.set(name, reason);
  }
  return incomplete;
}

function ownReason({ state, tasks, removed, badRecords }: StepFacts): string | null {
  if (removed) return 'was removed from the definition';
  if (state === 'blocked') return 'was blocked';
  const failed = tasks.get('Failed') ?? 0;
  if (failed > 0) return `has ${failed} failed task(s)`;
  const cancelled = tasks.get('Cancelled') ?? 0;
  if (cancelled > 0) return `has ${cancelled} cancelled task(s)`;
  if (state !== 'settled') return 'has not come to its end';
  return badRecords ? 'printed records that could not be read' : null;
}
