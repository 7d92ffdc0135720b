import type { Random } from '../random.ts';
import { fanOutShapes } from './fan-out-shapes.ts';
import { faultyShapes } from './faulty-shapes.ts';
import { operatedShapes } from './operated-shapes.ts';
import type { ScanPlan, Shape } from './shape.ts';

export const shapes: readonly Shape[] = [...fanOutShapes, ...faultyShapes, ...operatedShapes];

export interface PlannedScan extends ScanPlan {
  /** What it is called in commands, records and reports. */
  ref: string;
  shape: Shape;
  /** The name of its definition. */
  definition: string;
  /** Since the faults began. */
  atMs: number;
}

/** Every shape before any comes again; starts are spread over the time of the faults, so that some run at any moment. */
export function planScans(random: Random, count: number, overMs: number): PlannedScan[] {
  let deck: Shape[] = [];
  return Array.from({ length: count }, (_, index) => {
    if (deck.length === 0) deck = random.shuffled(shapes);
    const shape = deck.pop() as Shape;
    const ref = `s${index}-${shape.name}`;
    const definition = shape.ownDefinition ? ref : shape.name;
    return { ref, shape, definition, atMs: Math.floor((index / count) * overMs), ...shape.plan(ref, random) };
  });
}
