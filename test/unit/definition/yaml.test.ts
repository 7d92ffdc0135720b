import fc from 'fast-check';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { maxSourceBytes } from '#sonar/definition/read-yaml.ts';
import { ok, problemsOf, withStep } from './problems-of.ts';

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

  test.each<[string, string]>([
    ['aliases', `- &a x\n${'- *a\n'.repeat(20_000)}`],
    ['texts that touch', '"x"'.repeat(30_000)],
    [
      'steps that need each other',
      `sonar: 1\nname: x\nsteps:\n${Array.from({ length: 500 }, (_, index) => `  s${index}: {needs: {s${index + 1}: all}}`).join('\n')}`,
    ],
  ])('time does not grow with the square of the text: %s', (_, source) => {
    const before = process.cpuUsage();
    expect(problemsOf(source).length).toBeGreaterThan(0);
    // Processor time, since a loaded machine stretches the clock; the square would be tens of seconds.
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(5_000);
  });

  test('a message never carries a whole text', () => {
    const [problem = ''] = problemsOf(
      `sonar: 1\nname: x\nsteps: {a: {tags: [t], command: [c], needs: {b: ${'x'.repeat(5_000)}}}}`,
    );
    expect(problem.length).toBeLessThan(2_000);
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
      { seed: 20_005, numRuns: 500 },
    );
  });
});

test('CRLF and a byte order mark move no place', () => {
  const source = withStep(...ok, 'maxConcurrent: 0').replaceAll('\n', '\r\n');
  expect(problemsOf(source)).toEqual([
    '12:20 steps.scan.maxConcurrent: `0` is no whole number from 1 to 1000000',
  ]);
  expect(problemsOf(`\ufeff${withStep(...ok)}`)).toEqual([]);
});
