import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { definitionOf } from '#sonar/cli/one-command.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { CommandLine } from './command-line.ts';
import { problem, route, ScriptedApi } from './scripted-api.ts';
import { scanView } from './views.ts';

let api: ScriptedApi;
let cli: CommandLine;
beforeEach(async () => {
  api = await new ScriptedApi(() => problem(404, 'not_found', 'nothing scripted')).start();
  cli = new CommandLine();
  cli.environment = { SONAR_API_URL: api.url, SONAR_TOKEN: 'secret-token' };
  api.answer = route({
    'POST /v1/definitions': ({ body }) => {
      const compiled = compileDefinition((body as { source: string }).source);
      const name = compiled.ok ? compiled.definition.name : 'it does not compile';
      return {
        json: { name, revision: 1, sha256: '', steps: ['run'], appliedAt: '2026-01-02T03:04:05.678Z' },
      };
    },
    'POST /v1/scans': { status: 201, json: scanView() },
  });
});
afterEach(async () => {
  await api.stop();
  cli.remove();
});

const bodies = () => api.asked.map(({ body }) => body as Record<string, unknown>);
const compiledStep = () => {
  const compiled = compileDefinition(String(bodies()[0]?.source));
  return compiled.ok ? compiled.definition.steps[0] : undefined;
};

test('a command becomes a definition of its own, and a pinned scan of it', async () => {
  const words = [
    '--tag',
    'nmap',
    '--each',
    'a.test, b.test',
    '--allow',
    'a.test',
    '--read',
    'nmap-xml',
    '--timeout',
    '5m',
    '--retry',
    '2',
  ];
  const { code } = await cli.run('scan', 'run', ...words, '--', 'nmap', '-oX', '-', '--json', '${item}');
  expect(code).toBe(0);
  expect(compiledStep()).toMatchObject({
    tags: ['nmap'],
    target: [{ kind: 'item', path: [], join: null }],
    foreach: { in: { kind: 'input', input: 'each' } },
    outputs: [{ name: 'result', path: null, read: { reader: 'nmap-xml' } }],
    timeoutMs: 300_000,
    retry: { max: 2 },
  });
  expect(compiledStep()?.command).toHaveLength(5);
  expect(bodies()[1]).toMatchObject({
    definition: expect.stringMatching(/^run-nmap-[0-9a-f]{12}$/),
    name: 'nmap -oX - --json ${item}',
    inputs: { each: 'a.test\nb.test' },
    scope: { allow: ['a.test'], deny: [] },
    pin: true,
  });
});

test.each([
  ['a file', '@hosts.txt', '', 'x.test\ny.test'],
  ['standard input', '-', 'p.test\r\nq.test\n', 'p.test\nq.test'],
  ['standard input that looks like a file', '-', '@hosts.txt\n', '@hosts.txt'],
])('items come from %s', async (_what, each, stdin, items) => {
  writeFileSync(join(cli.folder, 'hosts.txt'), 'x.test\ny.test\n');
  cli.stdin = stdin;
  await cli.run('scan', 'run', '--tag', 't', '--each', each, '--', 'probe', '${item}');
  expect(bodies()[1]).toMatchObject({ inputs: { each: items } });
});

test('without items it is one task, and it is said that nothing is checked', async () => {
  const { err } = await cli.run('scan', 'run', '--tag', 't', '--', 'probe', 'a.test');
  expect(compiledStep()).toMatchObject({ foreach: null, target: null });
  expect(bodies()[1]).toMatchObject({ inputs: {} });
  expect(err).toContain('--target');
  await cli.run('scan', 'run', '--tag', 't', '--target', 'a.test', '--', 'probe', 'a.test');
  expect(api.asked).toHaveLength(4);
});

test('a command that names its result file writes it; words are what they are and no YAML', () => {
  const one = {
    tags: ['t'],
    each: false,
    target: null,
    read: null,
    timeout: null,
    retry: null,
    maxConcurrent: null,
  };
  const hostile = [
    'x',
    '${out.result}',
    '08',
    'true',
    '- a: b',
    '"quoted"',
    '\u2028',
    "it's",
    '$${item}',
    'é🙂',
  ];
  const { name, source } = definitionOf({ ...one, command: hostile });
  const compiled = compileDefinition(source);
  expect(compiled).toMatchObject({ ok: true, definition: { name } });
  const step = compiled.ok ? compiled.definition.steps[0] : undefined;
  expect(step?.outputs).toMatchObject([{ name: 'result', path: 'result' }]);
  expect(step?.command.slice(2)).toEqual(
    hostile.slice(2).map((text) => [{ kind: 'text', text: text.replace('$${', '${') }]),
  );
  // Other words are another definition; the same ones never are.
  expect(definitionOf({ ...one, command: hostile }).name).toBe(name);
  expect(definitionOf({ ...one, command: [...hostile, 'y'] }).name).not.toBe(name);
});

test.each([
  [['--tag', 't', '--', 'probe', '${item}'], 'the command[1]'],
  [['--tag', 'T!', '--', 'probe'], '--tag'],
  [['--tag', 't', '--read', 'nmapp', '--', 'probe'], '--read'],
  [['--tag', 't', '--timeout', 'soon', '--', 'probe'], '--timeout'],
  [['--tag', 't', '--each', ' , ', '--', 'probe'], 'there are no items'],
  [['--', 'probe'], '--tag'],
  [['--tag', 't'], 'missing required argument'],
])('%j is refused by what it is called on the command line', async (words, named) => {
  const { code, err } = await cli.run('scan', 'run', ...words);
  expect(code).toBe(2);
  expect(err).toContain(named);
  expect(api.asked).toEqual([]);
});
