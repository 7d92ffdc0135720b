// Scans without a fault of their own: every way in which tasks come from items, outputs and each other.
import { completed, digestOf, lineOf, noWork } from './expectation.ts';
import { act, numbered, type Shape, says } from './shape.ts';

const single: Shape = {
  name: 'single',
  inputs: {},
  steps: `
  only:
    tags: [left]
    command: ${act('ok', 'only', 'one', '0.2')}
    ${says}
`,
  plan: () => ({
    inputs: {},
    expects: { ends: ['Completed'], tasks: [completed('only', null, ['one'])], together: {} },
  }),
};

const lines: Shape = {
  name: 'lines',
  inputs: { items: '{type: lines, required: true}' },
  steps: `
  each:
    tags: [shared]
    foreach: {in: inputs.items}
    command: ${act('auto', 'each', '${item}', '0.5')}
    ${says}
`,
  plan: (_scan, random) => {
    const items = numbered(random.between(5, 25));
    return {
      inputs: { items },
      expects: {
        ends: ['Completed'],
        tasks: items.map((item) => completed('each', item)),
        together: {},
      },
    };
  },
};

/** Hundreds of short tasks on all workers, at most so many at once. */
const many: Shape = {
  ...lines,
  name: 'many',
  steps: lines.steps
    .replace('"0.5"', '"0.1"')
    .replace('tags: [shared]', 'tags: [shared]\n    maxConcurrent: 8'),
  plan: (_scan, random) => {
    const items = numbered(random.between(150, 300));
    return {
      inputs: { items },
      expects: { ends: ['Completed'], tasks: items.map((item) => completed('each', item)), together: {} },
    };
  },
};

/** A child for each task, one task over a folder of all, one over one merged file of all. */
const chain: Shape = {
  name: 'chain',
  inputs: { items: '{type: lines, required: true}' },
  steps: `
  each:
    tags: [left]
    foreach: {in: inputs.items}
    command: ${act('ok', 'each', '${item}', '0.3')}
    ${says}
  child:
    tags: [right]
    needs: {each: single}
    inputs: {found: {from: each.rows}}
    command: ${act('digest', 'child', 'x', '0.2', '${in.found}')}
    ${says}
  folder:
    tags: [shared]
    needs: {each: all}
    inputs: {found: {from: each.rows, as: directory}}
    command: ${act('digest', 'folder', 'x', '0.2', '${in.found}')}
    ${says}
  merged:
    tags: [shared]
    needs: {each: all, child: all}
    inputs: {found: {from: each.rows, pick: host, unique: true}}
    command: ${act('digest', 'merged', 'x', '0.2', '${in.found}')}
    ${says}
`,
  plan: (scan, random) => {
    const items = numbered(random.between(3, 12), 'link');
    return {
      inputs: { items },
      expects: {
        ends: ['Completed'],
        tasks: [
          ...items.map((item) => completed('each', item)),
          ...items.map(() => completed('child', null, [])),
          completed('folder', null, [digestOf(items.map((item) => lineOf(scan, 'each', item)))]),
          completed('merged', null, [digestOf(items)]),
        ],
        together: { child: items.map((item) => digestOf([lineOf(scan, 'each', item)])) },
      },
    };
  },
};

/** Rows of one output: a task a row, a task a group, a file of so many. */
const rows: Shape = {
  name: 'rows',
  inputs: { hosts: '{type: lines, required: true}' },
  steps: `
  find:
    tags: [left]
    inputs: {hosts: {from: inputs.hosts}}
    command: ${act('list', 'find', 'x', '0.3', '${in.hosts}')}
    outputs: {rows: {stdout: true, read: jsonl}}
  row:
    tags: [right]
    needs: {find: single}
    foreach: {in: find.rows, pick: host, unique: true}
    target: \${item}
    command: ${act('ok', 'row', '${item}', '0.3')}
    ${says}
  group:
    tags: [shared]
    needs: {find: all}
    foreach: {in: find.rows, group: host}
    target: \${item.host}
    command: ${act('ok', 'group', '${item.host}', '0.2')}
    ${says}
  batch:
    tags: [shared]
    needs: {find: all}
    foreach: {in: find.rows, pick: host, unique: true, batch: 3}
    target: \${item}
    command: ${act('list', 'batch', 'x', '0.2', '${batch}')}
    ${says}
`,
  plan: (_scan, random) => {
    const hosts = Array.from({ length: random.between(4, 14) }, (_, index) => `127.0.2.${index + 1}`);
    // Twice the same, for `unique` and `group`; one outside the scope, for nobody.
    const given = [...hosts, hosts[0] as string, '192.0.2.1'];
    return {
      inputs: { hosts: given },
      expects: {
        ends: ['Completed'],
        tasks: [
          completed('find', null, []),
          ...hosts.map((host) => completed('row', host)),
          ...hosts.map((host) => completed('group', host)),
          ...Array.from({ length: Math.ceil(hosts.length / 3) }, () => completed('batch', null, [])),
        ],
        together: { batch: hosts },
      },
    };
  },
};

const split: Shape = {
  name: 'split',
  inputs: { networks: '{type: cidrs, required: true}' },
  steps: `
  net:
    tags: [right]
    foreach: {in: inputs.networks, split: /26}
    target: \${item}
    command: ${act('digest', 'net', '${item}', '0.2', '${in.net}')}
    inputs: {net: {from: inputs.networks}}
    ${says}
`,
  plan: () => {
    const networks = ['127.0.8.0/24', '127.0.9.0/25'];
    const parts = [0, 64, 128, 192].map((low) => `127.0.8.${low}/26`);
    parts.push('127.0.9.0/26', '127.0.9.64/26');
    return {
      inputs: { networks },
      expects: {
        ends: ['Completed'],
        tasks: parts.map((part) => completed('net', part, [])),
        together: { net: parts.map(() => digestOf(networks)) },
      },
    };
  },
};

/** Nothing to do, and so for everything that comes after. */
const empty: Shape = {
  name: 'empty',
  inputs: { items: '{type: lines, default: ""}' },
  steps: `
  each:
    tags: [left]
    foreach: {in: inputs.items}
    command: ${act('ok', 'each', '${item}', '0.1')}
    ${says}
  child:
    tags: [left]
    needs: {each: single}
    command: ${act('ok', 'child', 'x', '0.1')}
  report:
    tags: [right]
    needs: {child: all}
    command: ${act('ok', 'report', 'x', '0.1')}
`,
  plan: () => ({
    inputs: {},
    expects: {
      ends: ['Completed'],
      tasks: [noWork('each'), noWork('child'), noWork('report')],
      together: {},
    },
  }),
};

/** A file that comes with the definition, and is kept by the workers. */
const files: Shape = {
  name: 'files',
  inputs: { items: '{type: lines, required: true}' },
  files: { words: `${numbered(200, 'word').join('\n')}\n` },
  steps: `
  each:
    tags: [shared]
    foreach: {in: inputs.items}
    command: ${act('digest', 'each', '${item}', '0.2', '${file.words}')}
    ${says}
`,
  plan: (_scan, random) => {
    const items = numbered(random.between(3, 8));
    const digest = digestOf(numbered(200, 'word'));
    return {
      inputs: { items },
      expects: {
        ends: ['Completed'],
        tasks: items.map((item) => completed('each', item, [digest])),
        together: {},
      },
    };
  },
};

export const fanOutShapes: readonly Shape[] = [single, lines, many, chain, rows, split, empty, files];
