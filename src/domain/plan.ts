// Which steps of a scan may begin, which are over and which can never begin: decided from persisted facts.
import type { Step } from '#sonar/contracts/definition.ts';
import type { StepState } from '#sonar/contracts/states.ts';

export interface StepFacts {
  state: StepState;
  begun: boolean;
  /** No longer in the definition: nothing more comes of it. */
  removed: boolean;
  /** Not terminal, or accepted and unread. */
  openTasks: boolean;
  openExpansions: boolean;
  /** Finished tasks of this step whose dependents are not made yet. */
  planDue: boolean;
  /** It began late and has not looked at all tasks that its parent step had finished before. */
  backfilling: boolean;
  completed: boolean;
  /** Completed, and not only for want of work. */
  realWork: boolean;
}

export type StepWork =
  /** One task for the whole step. */
  | { kind: 'task'; noWork: boolean }
  /** One expansion for the whole step. */
  | { kind: 'expansion' }
  /** A child (or an expansion) for each finished task of this upstream step, as they finish. */
  | { kind: 'children'; of: string };

export type PlanAction =
  | { kind: 'begin'; step: Step; work: StepWork; pinned: string[] }
  | { kind: 'block'; step: Step; note: string }
  | { kind: 'settle'; step: Step };

interface Plannable {
  steps: readonly Step[];
}

/**
 * Settling one step may let another begin, so the caller acts and asks again until nothing comes. Safe to
 * repeat: it asks for what is missing, never for what is next in a cursor.
 */
export function planSteps(definition: Plannable, facts: ReadonlyMap<string, StepFacts>): PlanAction[] {
  return definition.steps.flatMap((step) => {
    const own = facts.get(step.name);
    if (!own || own.state !== 'open') return [];
    const action = own.begun || own.removed ? settle(step, own, facts) : begin(step, facts);
    return action ? [action] : [];
  });
}

export const singleNeed = (step: Step): string | undefined =>
  step.needs.find((need) => need.mode === 'single')?.step;
const allNeeds = (step: Step): string[] =>
  step.needs.filter((need) => need.mode === 'all').map((need) => need.step);

function begin(step: Step, facts: ReadonlyMap<string, StepFacts>): PlanAction | undefined {
  const pinned = allNeeds(step);
  const upstream = pinned.map((name) => facts.get(name));
  if (upstream.some((fact) => !fact || fact.state === 'open')) return undefined;
  const barren = pinned.find((name) => facts.get(name)?.completed !== true);
  if (barren !== undefined) return { kind: 'block', step, note: `step "${barren}" has no completed task` };
  const parent = singleNeed(step);
  if (parent !== undefined) return { kind: 'begin', step, work: { kind: 'children', of: parent }, pinned };
  if (pinned.length > 0 && upstream.every((fact) => fact?.realWork !== true))
    return { kind: 'begin', step, work: { kind: 'task', noWork: true }, pinned: [] };
  const work: StepWork = step.foreach ? { kind: 'expansion' } : { kind: 'task', noWork: false };
  return { kind: 'begin', step, work, pinned };
}

function settle(step: Step, own: StepFacts, facts: ReadonlyMap<string, StepFacts>): PlanAction | undefined {
  if (own.openTasks || own.openExpansions || own.backfilling) return undefined;
  const parent = own.removed ? undefined : singleNeed(step);
  if (parent !== undefined) {
    const upstream = facts.get(parent);
    if (!upstream || upstream.state === 'open' || upstream.planDue) return undefined;
  }
  return { kind: 'settle', step };
}

/** Steps that get a child of each finished task of `upstream`. */
export const childStepsOf = (definition: Plannable, upstream: string): Step[] =>
  definition.steps.filter((step) => singleNeed(step) === upstream);
