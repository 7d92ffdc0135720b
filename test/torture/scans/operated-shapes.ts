// Scans that somebody interferes with: held, cancelled, tried again.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { completed, digestOf, failed } from './expectation.ts';
import { act, numbered, ownName, type Shape, says } from './shape.ts';

const each = (step: string, verb: string, seconds: string): string => `
  ${step}:
    tags: [shared]
    foreach: {in: inputs.items}
    command: ${act(verb, step, '${item}', seconds)}
    ${says}
`;
const inputs = { items: '{type: lines, required: true}' };

/** Over all that `each` has shown. */
const report = `
  report:
    tags: [right]
    needs: {each: all}
    inputs: {all: {from: each.rows, pick: host}}
    command: ${act('list', 'report', 'x', '0.1', '${in.all}')}
    ${says}
`;

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
  steps: each('each', 'gate', '0.3') + report,
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

/** While the commands of its first step hang, its second is put right, its third taken out and a fourth added. */
const edited: Shape = {
  name: 'edited',
  inputs,
  ownDefinition: true,
  steps: `${each('each', 'wait', '0.2')}
  wrong:
    tags: [right]
    needs: {each: all}
    command: ${act('fail', 'wrong', 'x', '0.1')}
    ${says}
  dropped:
    tags: [left]
    needs: {each: single}
    command: ${act('ok', 'dropped', 'x', '0.1')}
    ${says}
`,
  plan: (_scan, random) => {
    const items = numbered(random.between(2, 6));
    return {
      inputs: { items },
      expects: {
        ends: ['Completed'],
        tasks: [
          ...items.flatMap((item) => [completed('each', item), completed('added', item)]),
          completed('wrong', null, ['x']),
        ],
        together: {},
      },
      async operate(operator, scanId, scan) {
        await operator.until(scanId, ({ steps }) => steps.some(({ counts }) => counts.running > 0));
        const revision = await operator.define(edited, scan, revised);
        await operator.until(scanId, ({ steps }) =>
          steps.every((step) => step.revision === revision || step.removed),
        );
        writeFileSync(join(operator.marks, `gate-${scan}`), '');
      },
    };
  },
};
const revised = `${each('each', 'wait', '0.2')}
  wrong:
    tags: [right]
    needs: {each: all}
    command: ${act('ok', 'wrong', 'x', '0.1')}
    ${says}
  added:
    tags: [left]
    needs: {each: single}
    foreach: {in: each.rows, pick: host}
    command: ${act('ok', 'added', '${item}', '0.1')}
    ${says}
`;

/** Its tasks wait for a secret that is set when the scan already runs. */
const secret: Shape = {
  name: 'secret',
  inputs,
  ownDefinition: true,
  steps: each('each', 'secret', '0.2').replace('foreach', `secrets: {TOKEN: ${ownName}}\n    foreach`),
  plan: (scan, random) => {
    const items = numbered(random.between(2, 6));
    const hidden = `hidden-of-${scan}-${random.between(0, 2 ** 31)}`;
    return {
      inputs: { items },
      hidden,
      expects: {
        ends: ['Completed'],
        tasks: items.map((item) => completed('each', item, [digestOf([hidden])])),
        together: {},
      },
      async operate(operator, scanId) {
        await operator.until(scanId, ({ steps }) => steps.some(({ note }) => note?.includes(scan)));
        await operator.setSecret(scan, hidden);
      },
    };
  },
};

/** What cannot be read is read again, and still cannot be; what rests on all of it is made anew. */
const repaired: Shape = {
  name: 'repaired',
  inputs,
  steps: each('each', 'auto', '0.2') + report,
  plan: (_scan, random) => {
    const items = numbered(random.between(2, 6));
    return {
      inputs: { items: random.shuffled([...items, 'poison-0']) },
      expects: {
        ends: ['CompletedWithErrors'],
        tasks: [
          ...items.map((item) => completed('each', item)),
          failed('each', 'poison-0', { results: 1 }),
          completed('report', null, items),
        ],
        together: {},
      },
      async operate(operator, scanId) {
        await operator.ended(scanId);
        await operator.repair(scanId);
      },
    };
  },
};

export const operatedShapes: readonly Shape[] = [paused, cancelled, retried, edited, secret, repaired];
