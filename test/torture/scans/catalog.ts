import { join } from 'node:path';
import type { Random } from '../random.ts';
import { fanOutShapes } from './fan-out-shapes.ts';
import { faultyShapes } from './faulty-shapes.ts';
import { operatedShapes } from './operated-shapes.ts';
import type { ScanPlan, Shape } from './shape.ts';

export const shapes: readonly Shape[] = [...fanOutShapes, ...faultyShapes, ...operatedShapes];

const command = join(import.meta.dirname, '..', 'commands', 'act.sh');

/** The whole text; commands find the ledger and the marks of this run by their environment. */
export function definitionOf(shape: Shape, places: { ledger: string; marks: string }): string {
  const environment = `env: {SCAN: "\${inputs.scan}", LEDGER: "${places.ledger}", MARKS: "${places.marks}"}`;
  const inputs = Object.entries({ scan: '{type: text, required: true}', ...shape.inputs })
    .map(([name, declaration]) => `  ${name}: ${declaration}`)
    .join('\n');
  const steps = shape.steps
    .replaceAll('ACT,', `"${command}",`)
    .replaceAll(/^ {4}command: .*$/gm, (line) => `${line}\n    ${environment}`);
  return `sonar: 1\nname: ${shape.name}\ninputs:\n${inputs}\nsteps:${steps}`;
}

export interface PlannedScan extends ScanPlan {
  /** What it is called in commands, records and reports. */
  ref: string;
  shape: Shape;
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
    return { ref, shape, atMs: Math.floor((index / count) * overMs), ...shape.plan(ref, random) };
  });
}
