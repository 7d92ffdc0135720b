import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandLine } from './command-line.ts';
import { problem, route, ScriptedApi } from './scripted-api.ts';

const cli = new CommandLine();
const api = new ScriptedApi(() => 'hang up');
beforeAll(async () => {
  await api.start();
  cli.environment = { SONAR_API_URL: api.url, SONAR_TOKEN: 'secret-token' };
});
afterEach(() => api.asked.splice(0));
afterAll(async () => {
  await api.stop();
  cli.remove();
});

const step = {
  step: 'each',
  tags: ['probe'],
  dependsOn: [] as string[],
  tasks: 7,
  noWork: false,
  refused: 3,
  refusals: ['"x\u001b[2J" is outside the scope'],
  failing: 1,
  failures: [{ item: '-x', reason: 'argument 1 would start with "-"' }],
  samples: [{ item: 'a.test', command: ['probe', 'a.test'], stdin: null, env: {} }],
  notes: ['no live worker has the tag probe'],
  counted: true,
};
const answer = {
  definition: 'survey',
  revision: 3,
  scope: { allow: ['a.test'], deny: [] },
  tasks: 7,
  steps: [step, { ...step, step: 'later', tasks: 0, samples: [], dependsOn: ['each.rows'], notes: [] }],
};

test('a name is planned as it was applied; all is counted, the first are shown, and hostile text is made safe', async () => {
  api.answer = route({ 'POST /v1/definitions/plan': { json: answer } });
  const { code, out } = await cli.run(
    'definition',
    'plan',
    'survey',
    '--input',
    'hosts=a.test',
    '--allow',
    'a.test',
    '--limit',
    '1',
  );
  expect(code).toBe(0);
  expect(api.asked[0]?.body).toEqual({
    definition: 'survey',
    inputs: { hosts: 'a.test' },
    scope: { allow: ['a.test'], deny: [] },
    limit: 1,
  });
  expect(out).toContain('each on probe: 7 tasks');
  expect(out).toContain('  a.test: ["probe","a.test"]\n    … and 5 more');
  expect(out).toContain('1 item that cannot become a command');
  expect(out).toContain('3 refused:');
  expect(out).toContain('later on probe: depends on results of each.rows');
  expect(out).toContain('7 tasks at the start; 1 step by results; nothing was made');
  expect(out).not.toContain('\u001b');
});

test('a file is planned as it is, and its faults have its name', async () => {
  writeFileSync(join(cli.folder, 'd.yaml'), 'sonar: 1\n');
  api.answer = () =>
    problem(422, 'invalid', 'the definition has 1 problem(s)', {
      problems: [{ path: 'name', line: 1, column: 1, message: 'is missing', hint: null }],
    });
  const { code, err } = await cli.run('definition', 'plan', 'd.yaml', '--allow', 'a.test');
  expect(code).toBe(1);
  expect(api.asked[0]?.body).toMatchObject({ source: 'sonar: 1\n' });
  expect(err).toContain('d.yaml');
  api.answer = route({ 'POST /v1/definitions/plan': { json: answer } });
  const { out } = await cli.run('definition', 'plan', './d.yaml', '--json');
  expect(JSON.parse(out)).toEqual(answer);
});

test('a definition that was deleted says so, and so does one that is not there', async () => {
  api.answer = route({ 'DELETE /v1/definitions/survey': { json: { name: 'survey', deleted: true } } });
  const { code, out } = await cli.run('definition', 'delete', 'survey');
  expect({ code, out }).toMatchObject({
    code: 0,
    out: expect.stringContaining('go on with its last revision'),
  });
  expect(await cli.run('definition', 'delete', 'nobody')).toMatchObject({ code: 1 });
});
