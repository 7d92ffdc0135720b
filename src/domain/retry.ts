// What a retry of finished tasks opens again, and what it makes void.
import type { Definition } from '#sonar/contracts/definition.ts';

export interface RetryEffects {
  /** May get new tasks again; what they finished stays. */
  reopened: string[];
  /** Rest on all results of a reopened step: their tasks are superseded and made anew. */
  superseded: string[];
}

/**
 * Children of single needs stay with their parents. An All step saw results that are about to change, so it and
 * all that descends from it is void. `definition.steps` must be in an order in which needs come first.
 */
export function retryEffects(
  definition: Pick<Definition, 'steps'>,
  retried: ReadonlySet<string>,
): RetryEffects {
  const reopened = new Set<string>();
  const superseded = new Set<string>();
  for (const step of definition.steps) {
    const isVoid = step.needs.some(
      (need) => superseded.has(need.step) || (need.mode === 'all' && reopened.has(need.step)),
    );
    if (isVoid) superseded.add(step.name);
    else if (retried.has(step.name) || step.needs.some((need) => reopened.has(need.step)))
      reopened.add(step.name);
  }
  return { reopened: [...reopened], superseded: [...superseded] };
}
