// Scans that somebody interferes with: held, cancelled, tried again.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { completed } from './expectation.ts';
import { act, numbered, type Shape, says } from './shape.ts';

const each = (step: string, verb: string, seconds: string): string => `
  ${step}:
    tags: [shared]
    foreach: {in: inputs.items}
    command: ${act(verb, step, '${item}', seconds)}
    ${says}
`;
const inputs = { items: '{type: lines, required: true}' };

const paused: Shape = {
  name: 'paused',
  inputs,
  steps: each('each', 'ok', '0.5'),
  plan: (_scan, random) => {
    const items = numbered(random.between(10, 30));
    const holds = [random.between(1_000, 4_000), random.between(500, 6_000)];
    return {
      inputs: { items },
      expects: { ends: ['Completed'], tasks: items.map((item) => completed('each', item)), together: {} },
      async operate(operator, scanId) {
        for (const ms of holds) {
          await operator.until(scanId, ({ steps }) => (steps[0]?.counts.completed ?? 0) > 0);
          await operator.hold(scanId, ms);
        }
      },
    };
  },
};

/** Long commands that are ended: a task may be done before, none may be lost. */
const cancelled: Shape = {
  name: 'cancelled',
  inputs,
  steps: each('each', 'ok', '2') + each('long', 'hang', '0').replace('tags: [shared]', 'tags: [left]'),
  plan: (_scan, random) => {
    const items = numbered(random.between(4, 8));
    return {
      inputs: { items },
      expects: {
        ends: ['Cancelled'],
        tasks: [
          ...items.map((item) => ({ ...completed('each', item), ends: ['Completed', 'Cancelled'] as const })),
          ...items.map((item) => ({ ...completed('long', item, []), ends: ['Cancelled'] as const })),
        ],
        together: {},
      },
      async operate(operator, scanId) {
        await operator.until(scanId, ({ steps }) => steps.some(({ counts }) => counts.running > 0));
        await operator.cancel(scanId);
      },
    };
  },
};

/** All fail until a mark is there; then everything is tried again, and what needs all of them is made anew. */
const retried: Shape = {
  name: 'retried',
  inputs,
  steps: `${each('each', 'gate', '0.3')}
  report:
    tags: [right]
    needs: {each: all}
    inputs: {all: {from: each.rows, pick: host}}
    command: ${act('list', 'report', 'x', '0.1', '${in.all}')}
    ${says}
`,
  plan: (_scan, random) => {
    const items = numbered(random.between(3, 9));
    return {
      inputs: { items },
      expects: {
        ends: ['Completed'],
        tasks: [...items.map((item) => completed('each', item)), completed('report', null, items)],
        together: {},
      },
      async operate(operator, scanId, scan) {
        await operator.ended(scanId);
        writeFileSync(join(operator.marks, `gate-${scan}`), '');
        await operator.retry(scanId);
      },
    };
  },
};

export const operatedShapes: readonly Shape[] = [paused, cancelled, retried];
