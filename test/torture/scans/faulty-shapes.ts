// Scans whose commands fail, hang, or leave what cannot be read: the right answer is the right failure.
import { completed, type ExpectedTask, failed } from './expectation.ts';
import { act, numbered, type Shape, says } from './shape.ts';

/** A failure, one retry that helps, retries that do not, a timeout and a partial output, each a step of its own. */
const failures: Shape = {
  name: 'failures',
  inputs: {},
  steps: `
  exhausted:
    tags: [left]
    retry: {max: 2, backoff: 1s}
    command: ${act('fail', 'exhausted', 'x', '0.2')}
    ${says}
  flaky:
    tags: [right]
    retry: {max: 2, backoff: 1s}
    command: ${act('flaky', 'flaky', 'x', '0.2')}
    ${says}
  hang:
    tags: [shared]
    timeout: 3s
    command: ${act('hang', 'hang', 'x', '0')}
    ${says}
  partial:
    tags: [shared]
    command: ${act('partial', 'partial', 'x', '0.2')}
    ${says}
  after:
    tags: [left]
    needs: {flaky: all}
    command: ${act('ok', 'after', 'x', '0.1')}
    ${says}
`,
  plan: () => ({
    inputs: {},
    expects: {
      ends: ['CompletedWithErrors'],
      tasks: [
        failed('exhausted', null, { results: 3 }),
        completed('flaky', null, ['x']),
        failed('hang', null, { says: ['x'], partial: true, results: 1 }),
        failed('partial', null, { says: ['x'], partial: true, results: 1 }),
        completed('after', null, ['x']),
      ],
      together: {},
    },
  }),
};

/** Some fail beside others that do not: the scan is Completed, and what comes after sees the good ones only. */
const mixed: Shape = {
  name: 'mixed',
  inputs: { items: '{type: lines, required: true}' },
  steps: `
  each:
    tags: [shared]
    retry: {max: 1, backoff: 1s}
    foreach: {in: inputs.items}
    command: ${act('auto', 'each', '${item}', '0.3')}
    ${says}
  child:
    tags: [left]
    needs: {each: single}
    foreach: {in: each.rows, pick: host}
    command: ${act('ok', 'child', '${item}', '0.1')}
    ${says}
`,
  plan: (_scan, random) => {
    const good = numbered(random.between(3, 8));
    const flaky = numbered(random.between(1, 3), 'flaky');
    const bad = numbered(random.between(1, 3), 'fail');
    return {
      inputs: { items: random.shuffled([...good, ...flaky, ...bad]) },
      expects: {
        ends: ['Completed'],
        tasks: [
          ...[...good, ...flaky].flatMap((item) => [
            completed('each', item),
            completed('child', item, [item]),
          ]),
          ...bad.map((item) => failed('each', item, { results: 2 })),
        ],
        together: {},
      },
    };
  },
};

/** Nobody completes, so what needs all of them is blocked. */
const blocked: Shape = {
  name: 'blocked',
  inputs: { items: '{type: lines, required: true}' },
  steps: `
  each:
    tags: [right]
    foreach: {in: inputs.items}
    command: ${act('auto', 'each', '${item}', '0.2')}
    ${says}
  report:
    tags: [left]
    needs: {each: all}
    command: ${act('ok', 'report', 'x', '0.1')}
`,
  plan: (_scan, random) => {
    const items = numbered(random.between(1, 4), 'fail');
    return {
      inputs: { items },
      expects: {
        ends: ['CompletedWithErrors'],
        tasks: items.map((item) => failed('each', item, { results: 1 })),
        together: {},
      },
    };
  },
};

/** One output of several that no reader can read. */
const poisoned: Shape = {
  name: 'poisoned',
  inputs: { items: '{type: lines, required: true}' },
  steps: `
  each:
    tags: [shared]
    foreach: {in: inputs.items}
    command: ${act('auto', 'each', '${item}', '0.2')}
    ${says}
  child:
    tags: [right]
    needs: {each: single}
    command: ${act('ok', 'child', 'x', '0.1')}
`,
  plan: (_scan, random) => {
    const good = numbered(random.between(2, 5));
    return {
      inputs: { items: random.shuffled([...good, 'poison-0']) },
      expects: {
        ends: ['CompletedWithErrors'],
        tasks: [
          ...good.flatMap((item): ExpectedTask[] => [completed('each', item), completed('child', null, [])]),
          failed('each', 'poison-0', { results: 1 }),
        ],
        together: {},
      },
    };
  },
};

export const faultyShapes: readonly Shape[] = [failures, mixed, blocked, poisoned];
