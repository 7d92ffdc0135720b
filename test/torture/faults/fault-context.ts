import type { DispatchCopies } from '../dispatch-copies.ts';
import type { Disturbances } from '../disturbances.ts';
import type { PlannedFault } from '../schedule.ts';
import type { TortureSystem } from '../system.ts';

export interface FaultContext {
  system: TortureSystem;
  disturbances: Disturbances;
  copies: DispatchCopies;
  /** Aborts when the faults are over: what lasts is ended early. */
  signal: AbortSignal;
}

/** Does the harm, lasts as long as it lasts, and says what it came to. Throws when there was nothing to harm. */
export type Fault = (context: FaultContext, planned: PlannedFault) => Promise<string>;

/** How long, between two bounds, by the fault's share. */
export const lasting = (planned: PlannedFault, shortestMs: number, longestMs: number): number =>
  Math.round(shortestMs + planned.span * (longestMs - shortestMs));
