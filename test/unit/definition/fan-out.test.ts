// `foreach`, `inputs`, `files` and `secrets`: what they compile to, and what is wrong with them.
import type { Definition } from '#sonar/contracts/definition.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { exampleText } from '../../fixtures/examples.ts';
import { ok, problemsOf, withStep } from './problems-of.ts';

function compiled(source: string): Definition {
  const result = compileDefinition(source);
  if (!result.ok) throw new Error(JSON.stringify(result.problems, null, 1));
  return result.definition;
}
const scanStep = (...lines: string[]) =>
  compiled(withStep(...lines)).steps.find(({ name }) => name === 'scan');

describe('the examples compile as they stand', () => {
  test('domain-survey', () => {
    const { files, steps } = compiled(exampleText('domain-survey'));
    expect(files).toEqual({ templates: { path: './nuclei-templates', kind: 'file', digest: '' } });
    const [, resolve, web, findings] = steps;
    expect(resolve).toMatchObject({
      inputs: [{ name: 'hosts', as: 'lines', pick: 'host', unique: true }],
      target: [{ kind: 'in', name: 'hosts' }],
    });
    expect(web?.foreach).toMatchObject({ pick: 'host', unique: true, batch: { size: 100, as: 'lines' } });
    expect(findings?.command.flat()).toContainEqual({ kind: 'file', name: 'templates' });
  });

  test('cidr-survey', () => {
    const [ports, services, report] = compiled(exampleText('cidr-survey')).steps;
    expect(ports?.foreach).toMatchObject({ split: 24 });
    expect(services?.foreach).toMatchObject({ group: 'ip' });
    expect(report?.inputs).toMatchObject([{ name: 'scans', as: 'directory' }]);
  });
});

const single = 'needs: {other: single}';
const all = 'needs: {other: all}';

test.each([
  [
    'values of rows are lines',
    [single, 'foreach: {in: other.page, pick: host, batch: 5}'],
    { size: 5, as: 'lines' },
  ],
  ['rows are JSON Lines', [single, 'foreach: {in: other.page, batch: 5}'], { size: 5, as: 'jsonl' }],
  [
    'lines of an input may be JSON',
    ['foreach: {in: inputs.hosts, batch: 5, as: jsonl}'],
    { size: 5, as: 'jsonl' },
  ],
  ['files are a folder', [single, 'foreach: {in: other.lines, batch: 5}'], { size: 5, as: 'directory' }],
])('a batch: %s', (_what, lines, batch) => {
  expect(scanStep('tags: [tool]', 'command: [tool, "${batch}"]', ...lines)?.foreach?.batch).toEqual(batch);
});

test.each([
  ['the one file of a parent', [single, 'inputs: {x: {from: other.rows}}'], { as: 'file', pick: null }],
  ['a folder a task', [all, 'inputs: {x: {from: other.rows}}'], { as: 'directory' }],
  ['one merged file of all', [all, 'inputs: {x: {from: other.rows, as: file}}'], { as: 'file' }],
  [
    'lines where a field is picked',
    [all, 'inputs: {x: {from: other.rows, pick: ip}}'],
    { as: 'lines', pick: 'ip' },
  ],
  [
    'lines where it is the target',
    [single, 'inputs: {x: {from: other.lines}}', 'target: ${in.x}'],
    { as: 'lines' },
  ],
  ['the lines of a list', ['inputs: {x: {from: inputs.hosts}}'], { as: 'lines' }],
  ['the file of a text', ['inputs: {x: {from: inputs.ports}}'], { as: 'file' }],
])('an input is %s', (_what, lines, expected) => {
  expect(scanStep(...ok, ...lines)?.inputs[0]).toMatchObject(expected);
});

test('secrets are variables: named after them, or as the author says', () => {
  expect(scanStep(...ok, 'secrets: [shodan-key, x]')?.secrets).toEqual({ SHODAN_KEY: 'shodan-key', X: 'x' });
  expect(scanStep(...ok, 'secrets: {API_KEY: shodan-key}')?.secrets).toEqual({ API_KEY: 'shodan-key' });
});

test.each<[string, string[], string[]]>([
  [
    'everything that a group excludes',
    [single, 'foreach: {in: other.rows, group: ip, pick: port, unique: true, batch: 2, split: /24}'],
    [
      '13:48 steps.scan.foreach.pick: `pick` has no place beside `group` | a group is one item: its whole rows',
      '13:62 steps.scan.foreach.unique: `unique` has no place beside `group` | a group is one item: its whole rows',
      '13:75 steps.scan.foreach.batch: `batch` has no place beside `group` | a group is one item: its whole rows',
      '13:75 steps.scan.foreach.batch: `scan` never reads its batch | write `${batch}` in the command, or `stdin: ${batch}`',
      '13:85 steps.scan.foreach.split: `split` has no place beside `group` | a group is one item: its whole rows',
    ],
  ],
  [
    'a group by a field that rows do not have',
    [single, 'foreach: {in: other.rows, group: adress}'],
    [
      '13:38 steps.scan.foreach.group: rows of `other.rows` have no field `adress` | known: ip, host, hostnames, port, host_port, ip_port, protocol, state, service, product, version, tunnel, extrainfo, title, cpes, scripts, url',
    ],
  ],
  [
    'a group by a path',
    [single, 'foreach: {in: other.page, group: a.b}'],
    [
      '13:38 steps.scan.foreach.group: a group is by one field of the row, not by a path | write the name of the field',
    ],
  ],
  [
    'a list of a group in one argument',
    [
      single,
      'foreach: {in: other.rows, group: ip}',
      'env: {P: "${item.port}", Q: "${join(item.port)}", R: "${item.ip}"}',
    ],
    ['14:15 steps.scan.env.P: `${item.port}` is a list: all of the group `ip` | write `${join(item.port)}`'],
  ],
  [
    'sizes that are none',
    ['foreach: {in: inputs.hosts, batch: 0, split: 24}', 'stdin: ${batch}'],
    [
      '12:40 steps.scan.foreach.batch: `0` is no whole number from 1 to 100000',
      '12:50 steps.scan.foreach.split: `24` is no size of a network | write `/24`',
    ],
  ],
  [
    'a prefix that no network has',
    ['foreach: {in: inputs.hosts, split: /129}'],
    [
      '12:40 steps.scan.foreach.split: `/129` is no size of a network | write the length of the prefix, as `/24`',
    ],
  ],
  [
    'a batch that nobody reads',
    ['foreach: {in: inputs.hosts, batch: 10}'],
    [
      '12:40 steps.scan.foreach.batch: `scan` never reads its batch | write `${batch}` in the command, or `stdin: ${batch}`',
    ],
  ],
  [
    'an item of a batch beside it',
    ['foreach: {in: inputs.hosts, batch: 10}', 'stdin: ${batch}', 'env: {A: "${item}"}', 'target: ${batch}'],
    [
      '14:15 steps.scan.env.A: `${item}`: the items of a batch are in its file | write `${batch}`',
      '15:13 steps.scan.target: a batch is checked item by item | write `${item}`',
    ],
  ],
  [
    'a batch without batches',
    ['foreach: {in: inputs.hosts}', 'stdin: ${batch}'],
    ['13:12 steps.scan.stdin: `${batch}`: the step has no batches | add `batch: N` to `foreach`'],
  ],
  [
    'a form of no batch',
    ['foreach: {in: inputs.hosts, as: jsonl}'],
    [
      '12:37 steps.scan.foreach.as: `as: jsonl` is how a batch is written | add `batch: N`, or leave `as` out',
    ],
  ],
  [
    'a row as a line',
    [single, 'foreach: {in: other.rows, batch: 2, as: lines}', 'stdin: ${batch}'],
    ['13:45 steps.scan.foreach.as: a row is no line | add `pick: FIELD`, or write `as: jsonl`'],
  ],
  [
    'fields of files',
    [
      single,
      'foreach: {in: other.lines, pick: host, split: /24}',
      'env: {A: "${item.ip}", B: "${item.path}"}',
      'target: ${item}',
    ],
    [
      '13:38 steps.scan.foreach.pick: the items are the files of `other.lines`: `pick` has no place | add `read: lines` or another reader to `other.outputs.lines`',
      '13:51 steps.scan.foreach.split: the items are the files of `other.lines`: `split` has no place | add `read: lines` or another reader to `other.outputs.lines`',
    ],
  ],
  [
    'files as targets',
    [single, 'foreach: {in: other.page, as: directory}', 'env: {A: "${item.ip}"}', 'target: ${item}'],
    [
      '14:15 steps.scan.env.A: `${item.ip}`: the items are files | write `${item}` for the file itself, or one of ${item.path}, ${item.size}, ${item.sha256}; for its rows add a `read` to the output',
      '15:13 steps.scan.target: `${item}` is a file, and no target',
    ],
  ],
  [
    'a row as a line of an input',
    [all, 'inputs: {x: {from: other.rows, as: lines}, y: {from: other.rows, unique: true}}'],
    [
      '13:40 steps.scan.inputs.x.as: a row of `other.rows` is no line | add `pick: FIELD`, or write `as: jsonl`',
      '13:51 steps.scan.inputs.y: a row of `other.rows` is no line | add `pick: FIELD`, or write `as: jsonl`',
    ],
  ],
  [
    'fields of a file as it is',
    [
      all,
      'inputs: {x: {from: other.rows, as: directory, pick: ip, unique: true}, y: {from: other.lines, pick: ip}}',
    ],
    [
      '13:57 steps.scan.inputs.x.pick: `as: directory` gives files as they are: `pick` has no place | write `as: lines` or `as: jsonl`',
      '13:69 steps.scan.inputs.x.unique: `as: directory` gives files as they are: `unique` has no place | write `as: lines` or `as: jsonl`',
      '13:105 steps.scan.inputs.y.pick: `other.lines` has no `read`, so it has no rows | add a `read` to `other.outputs.lines`',
    ],
  ],
  [
    'forms that an input of the scan does not have',
    [
      'inputs: {x: {from: inputs.hosts, as: directory}, y: {from: inputs.ports, as: lines}, z: {from: inputs.hosts, pick: a}}',
    ],
    [
      '12:42 steps.scan.inputs.x.as: `inputs.hosts` is a list of lines | write `as: lines` or `as: jsonl`',
      '12:82 steps.scan.inputs.y.as: `inputs.ports` is one text | write `as: file`',
      '12:120 steps.scan.inputs.z.pick: `inputs.hosts` has no fields to pick | leave `pick` out',
    ],
  ],
  [
    'a target that is no file of lines',
    [all, 'inputs: {x: {from: other.rows, pick: ip, as: jsonl}}', 'target: ${in.x}'],
    [
      '14:13 steps.scan.target: the file `x` is not made of lines, which are what the scope is asked about | write `as: lines` at `inputs.x`',
    ],
  ],
  [
    'folders as standard input',
    [all, 'foreach: {in: other.lines, batch: 2}', 'inputs: {x: {from: other.rows}}', 'stdin: ${batch}'],
    ['15:12 steps.scan.stdin: `${batch}` is a directory, and no standard input | write it in the command'],
  ],
  [
    'a folder as standard input',
    [all, 'inputs: {x: {from: other.rows}}', 'stdin: ${in.x}'],
    ['14:12 steps.scan.stdin: `${in.x}` is a directory, and no standard input | write `as: file`'],
  ],
  [
    'secrets in the wrong place',
    ['secrets: [Bad, ok, ok, SONAR-X]', 'env: {OK: "1", A: "${secret.ok}"}'],
    [
      '12:15 steps.scan.secrets[0]: `Bad` cannot be the name of a secret | a name is a lower-case letter, then up to 62 of a–z, 0–9, - and _',
      '12:20 steps.scan.secrets[1]: the variable `OK` is set twice | write `{VARIABLE: NAME}`',
      '12:24 steps.scan.secrets[2]: the variable `OK` is set twice | write `{VARIABLE: NAME}`',
      '12:28 steps.scan.secrets[3]: `SONAR-X` cannot be the name of a secret | a name is a lower-case letter, then up to 62 of a–z, 0–9, - and _',
      '13:24 steps.scan.env.A: `${secret.ok}`: a secret never becomes an argument | write `secrets: [NAME]`: the command finds it in its environment',
    ],
  ],
])('%s is named, each with its place', (_what, lines, expected) => {
  expect(problemsOf(withStep(...ok, ...lines))).toEqual(expected);
});

test('a file of the scan is no text', () => {
  const source = withStep('tags: [tool]', 'command: [tool, "${inputs.words}"]').replace(
    'inputs: {',
    'inputs: {words: {type: file}, ',
  );
  expect(problemsOf(source)).toEqual([
    '11:22 steps.scan.command[1]: `${inputs.words}` is a file | add `inputs: {words: {from: inputs.words}}` to the step and write `${in.words}`',
  ]);
});
