import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { maxSourceBytes } from '#sonar/definition/read-yaml.ts';

/** `LINE:COLUMN PATH: MESSAGE | HINT` of every problem. */
function problemsOf(source: string): string[] {
  const result = compileDefinition(source);
  if (result.ok) return [];
  return result.problems.map(
    ({ line, column, path, message, hint }) =>
      `${line}:${column} ${path}: ${message}${hint === null ? '' : ` | ${hint}`}`,
  );
}

/** A definition of one step `scan` with these lines in it, and a step `other` before it. */
const withStep = (...lines: string[]): string =>
  [
    'sonar: 1',
    'name: test',
    'inputs: {hosts: {type: hosts}, ports: {type: text, default: 1-10}}',
    'steps:',
    '  other:',
    '    tags: [tool]',
    '    command: [tool, "${out.rows}", "${out.lines}"]',
    '    outputs: {rows: {path: r.xml, read: nmap-xml}, lines: {path: l.txt}, page: {path: p.jsonl, read: jsonl}}',
    '  scan:',
    ...lines.map((line) => `    ${line}`),
  ].join('\n');
const ok = ['tags: [tool]', 'command: [tool]'];

test('ten different mistakes give ten messages in one go, each with its place', () => {
  const source = `sonar: 2
name: Bad Name
inputs:
  hosts: {type: hostz, required: yes}
steps:
  ports:
    tags: []
    foreach: {in: inputs.host}
    command: [nmap, "\${itm}", "\${out.xml}"]
    timeout: 30
    outputs: {xml: {path: ../nmap.xml, read: nmap}}
  web:
    tgas: [web]
    tags: [web]
    needs: {port: single}
    command: [curl]
`;
  expect(problemsOf(source)).toEqual([
    '1:8 sonar: there is no language version `2` | write `sonar: 1`',
    '2:7 name: `Bad Name` cannot be the name of a definition | a name is a lower-case letter, then up to 62 of a–z, 0–9, - and _',
    '4:17 inputs.hosts.type: `hostz` is none of text, number, flag, lines, domains, hosts, cidrs, urls | did you mean `hosts`?',
    '4:34 inputs.hosts.required: `yes` is neither true nor false | did you mean `true`?',
    '7:11 steps.ports.tags: `tags` is empty | name at least one tag of the workers that may run the step',
    '8:19 steps.ports.foreach.in: there is no input `host` | did you mean `hosts`?',
    '9:22 steps.ports.command[1]: unknown variable `${itm}` | write item, item.FIELD, inputs.NAME, in.NAME, out.NAME or join(…)',
    '10:14 steps.ports.timeout: `30` is no duration | name the unit: `30s`',
    '11:27 steps.ports.outputs.xml.path: `../nmap.xml` leaves the output folder | write a path below the output folder, as `out/scan.xml`',
    '11:46 steps.ports.outputs.xml.read: there is no reader `nmap` | this version of Sonar reads lines, jsonl, nmap-xml',
    '13:5 steps.web.tgas: unknown field `tgas` | did you mean `tags`?',
    '15:13 steps.web.needs.port: there is no step `port` | did you mean `ports`?',
  ]);
});

describe('YAML', () => {
  test.each<[string, string, RegExp]>([
    ['nothing', '', /1:1 : the definition is empty/],
    ['a comment', '# nothing', /the definition is empty/],
    ['a list', '- a', /a definition is a mapping/],
    ['a text', 'sonar', /a definition is a mapping/],
    ['two documents', `${withStep(...ok)}\n---\na: 1`, /^12:1 : a definition is one YAML document/],
    ['a tab', 'sonar: 1\nsteps:\n\tscan: {}', /^3:1 : a tab is used as indentation \| indent with spaces/],
    ['a duplicate key', 'sonar: 1\nname: a\nname: b', /^3:1 name: `name` stands here twice/m],
    ['a merge key', withStep('<<: {tags: [tool]}', ...ok), /^10:5 steps.scan: merge keys/],
    ['a tag', withStep('image: !!str x', ...ok), /the tag `tag:yaml.org,2002:str` is not read/],
    ['a list as key', '? [a]\n: 1', /a key must be a text/],
    [
      'an unknown anchor',
      withStep('tags: [tool]', 'command: [tool, *x]'),
      /^11:21 steps.scan.command\[1\]: `\*x` names no anchor \| quote/,
    ],
    ['an alias in its own anchor', 'sonar: &a [*a]', /an alias stands inside its own anchor/],
    [
      'an unquoted template in [ ]',
      withStep('tags: [tool]', 'command: [tool, ${item}]'),
      /^11:22 .*quote an argument that holds a template: "\$\{item\}"/,
    ],
    [
      'a null argument',
      withStep('tags: [tool]', 'command: [tool, ~]'),
      /`steps.scan.command\[1\]` is empty .*quote `null` and `~`/,
    ],
    [
      'a list as argument',
      withStep('tags: [tool]', 'command: [tool, [a]]'),
      /`steps.scan.command\[1\]` must be a text, but is a list/,
    ],
    ['a NUL', withStep('tags: [tool]', 'command: [tool, "a\\0b"]'), /holds a NUL/],
  ])('%s is a problem with its place', (_, source, expected) => {
    expect(problemsOf(source).join('\n')).toMatch(expected);
  });

  test('neither aliases, depth nor size can exhaust the compiler', () => {
    const levels = 'bcdefghijk'.split('');
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...levels.map(
        (name, index) =>
          `${name}: &${name} [${Array.from({ length: 9 }, () => `*${'abcdefghijk'[index]}`).join(',')}]`,
      ),
    ].join('\n');
    expect(problemsOf(bomb).join('\n')).toMatch(/grows too large by its aliases/);
    expect(problemsOf('['.repeat(maxSourceBytes))).toEqual(['1:65 : the definition is nested too deeply']);
    expect(problemsOf('- '.repeat(10_000)).join()).toMatch(/nested too deeply/);
    expect(problemsOf('? '.repeat(10_000)).join()).toMatch(/nested too deeply/);
    expect(
      problemsOf(Array.from({ length: 500 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n')).join(),
    ).toMatch(/nested too deeply/);
    expect(problemsOf('a: 1\n'.repeat(100_000)).join()).toMatch(/too many parts/);
    expect(problemsOf(`name: ${'ä'.repeat(maxSourceBytes / 2)}`)).toEqual([
      `1:1 : the definition is larger than ${maxSourceBytes} bytes`,
    ]);
  });

  test('no text makes the compiler throw', () => {
    const piece = fc.constantFrom(
      'sonar: 1\n',
      'name: a\n',
      'steps:',
      '\n  a:',
      '\n    ',
      'tags: [t]',
      'command: [',
      ']',
      '${item',
      '}',
      '&a ',
      '*a',
      '- ',
      ': ',
      '"',
      "'",
      '|\n',
      '{',
      '\t',
      '\r\n',
      '!!x ',
      '<<: ',
      '? ',
      '%YAML 1.1\n---\n',
      '\ufeff',
      'null',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const result = compileDefinition(pieces.join(''));
        expect(result.ok || result.problems.length > 0).toBe(true);
      }),
      { seed: 20_005, numRuns: 1_000 },
    );
  });
});

describe('a step', () => {
  test.each<[string, string[], string]>([
    [
      'without command',
      ['tags: [tool]'],
      '10:5 steps.scan.command: `command` is missing | Program and arguments. There is no shell.',
    ],
    [
      'without tags',
      ['command: [tool]'],
      '10:5 steps.scan.tags: `tags` is missing | Workers with any of these tags may run it.',
    ],
    [
      'with a shell line',
      ['tags: [tool]', 'command: nmap -p 80'],
      '11:14 steps.scan.command: `command` must be a list of arguments | there is no shell: write `[nmap, -p, "80,443"]`',
    ],
    [
      'with a comma between digits',
      ['tags: [tool]', 'command: [tool, -p, 80,443,8080]'],
      '11:25 steps.scan.command[2]: inside [ ] `80,443` is two arguments | quote it: "80,443"',
    ],
    [
      'with an empty command',
      ['tags: [tool]', 'command: []'],
      '11:14 steps.scan.command: `command` is empty | name the program first',
    ],
    [
      'that lets an item choose the program',
      ['tags: [tool]', 'foreach: {in: inputs.hosts}', 'command: ["${item}"]'],
      '12:16 steps.scan.command[0]: the program must be a fixed text | an item or an input must not choose what is run',
    ],
    [
      'that lets an item choose the option',
      ['tags: [tool]', 'foreach: {in: inputs.hosts}', 'command: [tool, "--${item}"]'],
      '12:22 steps.scan.command[1]: an item must not choose the option | write the option out, or set `allowOptionItems: true`',
    ],
    [
      'with an item and no foreach',
      ['tags: [tool]', 'command: [tool, "${item}"]'],
      '11:22 steps.scan.command[1]: `${item}`: the step has no `foreach` | add `foreach: {in: inputs.NAME}` or `{in: STEP.OUTPUT}`',
    ],
    [
      'with a field of a line',
      ['tags: [tool]', 'foreach: {in: inputs.hosts}', 'command: [tool, "${item.ip}"]'],
      '12:22 steps.scan.command[1]: `${item.ip}`: the lines of an input have no fields | write `${item}`',
    ],
    [
      'with a whole row',
      ['tags: [tool]', 'needs: {other: single}', 'foreach: {in: other.page}', 'command: [tool, "x${item}"]'],
      '13:23 steps.scan.command[1]: `${item}` is a whole row | write `${item.FIELD}`, or `pick` a field',
    ],
    [
      'with a misspelled row field',
      [
        'tags: [tool]',
        'needs: {other: single}',
        'foreach: {in: other.rows}',
        'command: [tool, "${item.prot}"]',
      ],
      '13:22 steps.scan.command[1]: `${item.prot}`: rows have no field `prot` | did you mean `port`?',
    ],
    [
      'that picks a field there is not',
      [
        'tags: [tool]',
        'needs: {other: single}',
        'foreach: {in: other.rows, pick: adress}',
        'command: [tool, "${item}"]',
      ],
      '12:37 steps.scan.foreach.pick: rows of `other.rows` have no field `adress` | known: ip, host, port, protocol, state, service, product, version, tunnel, url',
    ],
    [
      'that picks from lines',
      [...ok, 'foreach: {in: inputs.hosts, pick: host}'],
      '12:39 steps.scan.foreach.pick: the lines of an input have no fields to pick | leave `pick` out',
    ],
    [
      'with foreach over a text',
      [...ok, 'foreach: {in: inputs.ports}'],
      '12:19 steps.scan.foreach.in: `ports` is one text, not a list | a list has the type lines, domains, hosts, cidrs, urls',
    ],
    [
      'with foreach over a step it does not need',
      [...ok, 'foreach: {in: other.rows}'],
      '12:19 steps.scan.foreach.in: `other` is not among the needs of `scan` | add `needs: {other: single}` or `all`',
    ],
    [
      'with foreach over an output that is not read',
      [...ok, 'needs: {other: single}', 'foreach: {in: other.lines}'],
      '13:19 steps.scan.foreach.in: `other.lines` has no `read`, so it has no rows | add `read: lines` or another reader to `other.outputs.lines`',
    ],
    [
      'with foreach over an unknown output',
      [...ok, 'needs: {other: single}', 'foreach: {in: other.row}'],
      '13:19 steps.scan.foreach.in: the step `other` has no output `row` | did you mean `rows`?',
    ],
    [
      'with foreach over an unknown step',
      [...ok, 'foreach: {in: othr.rows}'],
      '12:19 steps.scan.foreach.in: there is no step `othr` | did you mean `other`?',
    ],
    [
      'with a source of no form',
      [...ok, 'foreach: {in: hosts}'],
      '12:19 steps.scan.foreach.in: `hosts` is no source | write `inputs.NAME` or `STEP.OUTPUT`',
    ],
    [
      'with an input from a step it does not need',
      [...ok, 'inputs: {x: {from: other.rows}}'],
      '12:24 steps.scan.inputs.x.from: `other` is not among the needs of `scan` | add `needs: {other: single}` or `all`',
    ],
    [
      'with an unknown input of the scan',
      ['tags: [tool]', 'command: [tool, "-p=${inputs.port}"]'],
      '11:25 steps.scan.command[1]: `${inputs.port}`: there is no input `port` | did you mean `ports`?',
    ],
    [
      'with a list in one argument',
      ['tags: [tool]', 'command: [tool, "${inputs.hosts}"]'],
      '11:22 steps.scan.command[1]: `${inputs.hosts}` is a list, and this is one argument | write `${join(inputs.hosts)}`, or `foreach: {in: inputs.hosts}`',
    ],
    [
      'with an undeclared file',
      ['tags: [tool]', 'command: [tool, "${in.list}"]'],
      '11:22 steps.scan.command[1]: `${in.list}`: the step has no input `list`',
    ],
    [
      'with an undeclared output',
      ['tags: [tool]', 'command: [tool, "${out.xml}"]'],
      '11:22 steps.scan.command[1]: `${out.xml}`: the step has no output `xml` | add `outputs: {xml: {path: FILE}}`',
    ],
    [
      'with the path of the standard output',
      ['tags: [tool]', 'command: [tool, "${out.text}"]', 'outputs: {text: {stdout: true}}'],
      '11:22 steps.scan.command[1]: `${out.text}` is the standard output and has no path',
    ],
    [
      'with an output that is nowhere',
      [...ok, 'outputs: {a: {optional: true}}'],
      '12:15 steps.scan.outputs.a: `a` has neither a path nor stdout | write `path: FILE` or `stdout: true`',
    ],
    [
      'with an output that is in two places',
      [...ok, 'outputs: {a: {path: x, stdout: true}}'],
      '12:15 steps.scan.outputs.a: `a` has both a path and stdout | write `path: FILE` or `stdout: true`',
    ],
    [
      'with two outputs in one place',
      [...ok, 'outputs: {a: {path: x/y}, b: {path: x}}'],
      '12:31 steps.scan.outputs.b: `b` and `a` share the path `x`',
    ],
    [
      'with two single needs',
      [...ok, 'needs: {other: single, third: single}', 'env: {A: "1"}'],
      '12:28 steps.scan.needs.third: at most one need may be `single` | a task comes from one task of one step; make the other need `all`',
    ],
    ['that needs itself', [...ok, 'needs: {scan: all}'], '12:13 steps.scan.needs.scan: `scan` needs itself'],
    [
      'with a need of no mode',
      [...ok, 'needs: {other: every}'],
      '12:20 steps.scan.needs.other: `every` is none of single, all | known: single, all',
    ],
    [
      'with maxConcurrent 0',
      [...ok, 'maxConcurrent: 0'],
      '12:20 steps.scan.maxConcurrent: `0` is no whole number from 1 to 1000000',
    ],
    [
      'with an exit code that is none',
      [...ok, 'okExit: [0, 256]'],
      '12:17 steps.scan.okExit[1]: `256` is no whole number from 0 to 255',
    ],
    [
      'with a variable of Sonar',
      [...ok, 'env: {SONAR_TOKEN: x}'],
      "12:11 steps.scan.env.SONAR_TOKEN: `SONAR_TOKEN`: names with SONAR_ are Sonar's own",
    ],
    [
      'with an open template',
      ['tags: [tool]', 'command: [tool, "a${item"]'],
      '11:23 steps.scan.command[1]: `${` is never closed | close it with `}`, or write `$${` for a literal `${`',
    ],
    [
      'with one file of all',
      [...ok, 'needs: {other: all}', 'inputs: {x: {from: other.rows, as: file}}'],
      '13:17 steps.scan.inputs.x: `as: file` of a step that is needed by `all` is not read by this version of Sonar | write `as: directory`',
    ],
    [
      'with a record that lacks its key',
      [...ok, 'outputs: {a: {path: x, read: {format: jsonl, record: service, fields: {address: ip}}}}'],
      '12:75 steps.scan.outputs.a.read.fields: the record `service` needs the field `port` | add `port: ROW FIELD` under `fields`',
    ],
    [
      'with a record of lines that need fields',
      [...ok, 'outputs: {a: {path: x, read: {format: lines, record: address, fields: {ip: lin}}}}'],
      '12:80 steps.scan.outputs.a.read.fields.ip: rows of `lines` have no field `lin` | did you mean `line`?',
    ],
    [
      'with a record of a reader that makes its own',
      [...ok, 'outputs: {a: {path: x, read: {format: nmap-xml, record: address}}}'],
      '12:61 steps.scan.outputs.a.read.record: the reader `nmap-xml` makes its own records | write `read: nmap-xml`',
    ],
    [
      'with an unknown record',
      [...ok, 'outputs: {a: {path: x, read: {format: jsonl, record: endpiont}}}'],
      '12:58 steps.scan.outputs.a.read.record: `endpiont` is none of address, service, endpoint | did you mean `endpoint`?',
    ],
  ])('%s', (_, lines, expected) => {
    expect(problemsOf(withStep(...lines))).toContain(expected);
  });

  test.each(['/etc/passwd', '..', 'a/../b', './a', 'a//b', 'a/', 'a\\\\b', 'a\\nb', '${item}'])(
    'an output cannot lie at %s',
    (path) => {
      expect(problemsOf(withStep(...ok, `outputs: {a: {path: "${path}"}}`)).join()).toMatch(
        /steps\.scan\.outputs\.a\.path/,
      );
    },
  );

  test('a circle is named whole, once', () => {
    const step = (name: string, need: string): string =>
      `  ${name}: {tags: [t], command: [c], needs: {${need}: all}}`;
    expect(
      problemsOf(
        [
          'sonar: 1',
          'name: x',
          'steps:',
          step('a', 'c'),
          step('b', 'a'),
          step('c', 'b'),
          step('d', 'c'),
        ].join('\n'),
      ),
    ).toEqual(['4:40 steps.a.needs.c: the steps need each other in a circle: a → c → b → a']);
  });
});

test('a comma in a value inside { } is explained', () => {
  expect(
    problemsOf(
      'sonar: 1\nname: x\ninputs: {p: {type: text, default: 80,443}}\nsteps: {a: {tags: [t], command: [c]}}',
    ),
  ).toEqual([
    '3:38 inputs.p.443: unknown field `443` | inside { } a comma ends a value: quote it, as in "80,443"',
  ]);
});

test('the scope of a definition and the defaults of inputs are checked', () => {
  const source = [
    'sonar: 1',
    'name: x',
    'scope: {allow: [example.com, "*.example.com"], deny: [10.0.0.1/8]}',
    'inputs: {n: {type: number, default: many}, f: {type: flag, default: "on"}, l: {type: text, default: [a]}, r: {type: text, required: true, default: a}}',
    'steps: {a: {tags: [t], command: [c]}}',
  ].join('\n');
  expect(problemsOf(source)).toEqual([
    '3:30 scope.allow[1]: `*.example.com` is no domain, address or CIDR | a domain covers its subdomains: write `example.com`',
    '3:55 scope.deny[0]: `10.0.0.1/8` has bits set beyond its prefix | write `10.0.0.0/8` for the network',
    '4:37 inputs.n.default: the default of `n` is no number: `many`',
    '4:69 inputs.f.default: the default of `f` is neither true nor false: `on`',
    '4:101 inputs.l.default: the default of `l` is a list, but the type is none',
    '4:148 inputs.r.default: an input that is required has no use for a default | drop one of the two',
  ]);
});

test('CRLF and a byte order mark move no place', () => {
  const source = withStep(...ok, 'maxConcurrent: 0').replaceAll('\n', '\r\n');
  expect(problemsOf(source)).toEqual([
    '12:20 steps.scan.maxConcurrent: `0` is no whole number from 1 to 1000000',
  ]);
  expect(problemsOf(`\ufeff${withStep(...ok)}`)).toEqual([]);
});

/** Parts of the language that this version refuses rather than passes over. */
test.each(['domain-survey', 'cidr-survey'])(
  '%s is refused only for what this version does not read',
  (name) => {
    const source = readFileSync(join(__dirname, '../../fixtures/examples', `${name}.yaml`), 'utf8');
    const problems = problemsOf(source);
    expect(problems.length).toBeGreaterThan(0);
    for (const problem of problems) {
      expect(problem).toMatch(
        /is not read by this version of Sonar|this version of Sonar reads lines, jsonl, nmap-xml$/,
      );
    }
  },
);

test('every part of the language that is to come is named, not passed over', () => {
  const source = [
    withStep(
      ...ok,
      'needs: {other: all}',
      'foreach: {in: other.page, pick: host, unique: true, group: ip, batch: 10, split: /24, as: lines}',
      'inputs: {a: {from: other.rows, as: lines}, b: {from: other.rows, pick: ip, unique: true}, c: {from: inputs.hosts}}',
      'secrets: [key]',
      'run: {}',
      'target: ${in.a}',
      'stdin: ${batch}${file.x}${secret.key}',
    ),
    'files: {}',
  ].join('\n');
  const named = problemsOf(source).map((problem) => /: (.*) is not read by/.exec(problem)?.[1]);
  expect(named).toEqual([
    '`unique`',
    '`group`',
    '`batch`',
    '`split`',
    '`as`',
    '`as: lines`',
    '`pick`',
    '`unique`',
    'a file of an input',
    '`secrets`',
    '`run`',
    'a file as `target`',
    '`${batch}`',
    '`${file}`',
    '`${secret}`',
    '`files`',
  ]);
});
