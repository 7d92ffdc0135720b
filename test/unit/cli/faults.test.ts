import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandLine } from './command-line.ts';
import { problem, route, type ScriptedApi } from './scripted-api.ts';
import { useScriptedCli } from './scripted-cli.ts';

const scripted = useScriptedCli();
let api: ScriptedApi;
let cli: CommandLine;
beforeEach(() => {
  ({ api, cli } = scripted);
});

describe('faults name the thing and the way out', () => {
  test('nothing listens', async () => {
    await api.stop();
    const { code, err } = await cli.run('scan', 'list');
    expect(code).toBe(6);
    expect(err).toBe(
      `sonar: no Sonar API at ${api.url} (from SONAR_API_URL): nothing listens there; start one with "sonar up", or set SONAR_API_URL\n`,
    );
  });

  test('a token that is not known', async () => {
    api.answer = () => problem(401, 'unauthenticated', 'unknown token');
    const { code, err } = await cli.run('scan', 'list');
    expect(code).toBe(1);
    expect(err).toContain('refuses the token from SONAR_TOKEN: unknown token');
    expect(err).not.toContain('secret-token');
  });

  test('a token that sonar up left', async () => {
    cli.environment = {};
    mkdirSync(join(cli.folder, '.sonar'));
    writeFileSync(join(cli.folder, '.sonar', 'cli.json'), JSON.stringify({ apiUrl: api.url, token: 'old' }));
    api.answer = () => problem(401, 'unauthenticated', 'unknown token');
    expect((await cli.run('scan', 'list')).err).toMatch(
      /from .sonar\/cli.json: unknown token; or run "sonar up" again/,
    );
  });

  test('something else answers', async () => {
    api.answer = () => ({ text: '<html>hello</html>' });
    const { code, err } = await cli.run('scan', 'list');
    expect(code).toBe(1);
    expect(err).toContain('did not answer as a Sonar API of this version does (no JSON)');
  });

  test.each([
    [['scan', 'lst'], "unknown command 'lst'"],
    [['scan', 'list', '--status', 'Done'], 'Allowed choices are Running'],
    [['scan', 'show', '12'], 'Give the id of a scan, or latest'],
    [['scan', 'list', '--limit', '0'], 'Give a whole number from 1'],
    [['task', 'list'], "required option '--scan <id>' not specified"],
    [['token', 'create', '--role', 'viewer', '--name', 'n', '--tags', 'a'], 'bind worker tokens'],
    [['scan', 'start', 'survey', '--input', 'x'], 'write it as name=value'],
  ])('%j is usage', async (words, message) => {
    const { code, err } = await cli.run(...words);
    expect(err).toContain(message);
    expect(code).toBe(2);
    expect(api.asked).toEqual([]);
  });
});

describe('definitions', () => {
  const problems = [
    { path: 'steps.b', line: 9, column: 3, message: 'needs unknown step "a"', hint: 'did you mean "ab"?' },
    { path: 'x', line: 2, column: 1, message: 'unknown field "x"', hint: null },
  ];
  beforeEach(() => writeFileSync(join(cli.folder, 'survey.yaml'), 'sonar: 1\nname: survey\n'));

  test('problems are printed as compilers do, in the order of the text', async () => {
    api.answer = route({
      'POST /v1/definitions': problem(422, 'invalid', 'the definition has 2 problem(s)', { problems }),
    });
    const lines =
      'survey.yaml:2:1: unknown field "x"\nsurvey.yaml:9:3: needs unknown step "a" (did you mean "ab"?)\n';
    const applied = await cli.run('definition', 'apply', 'survey.yaml');
    expect(applied).toEqual({
      code: 1,
      out: '',
      err: `${lines}sonar: survey.yaml: the definition has 2 problem(s); nothing was applied\n`,
    });
  });

  test('a file is validated here, without an api', async () => {
    const broken = 'sonar: 1\nname: survey\nsteps:\n  ports:\n    tgas: [nmap]\n    command: [nmap]\n';
    writeFileSync(join(cli.folder, 'survey.yaml'), broken);
    const { code, out, err } = await cli.run('definition', 'validate', 'survey.yaml');
    expect({ code, err }).toEqual({ code: 1, err: '' });
    expect(out).toContain('survey.yaml:5:5: unknown field `tgas` (did you mean `tags`?)\n');
    writeFileSync(join(cli.folder, 'survey.yaml'), broken.replace('tgas', 'tags'));
    expect(await cli.run('definition', 'validate', 'survey.yaml')).toMatchObject({ code: 0 });
    expect(api.asked).toEqual([]);
  });

  test('apply sends the text', async () => {
    const applied = {
      name: 'survey',
      revision: 3,
      sha256: 'x',
      steps: ['ports'],
      appliedAt: '2026-01-02T03:04:05Z',
    };
    api.answer = route({ 'POST /v1/definitions': { json: applied } });
    expect((await cli.run('definition', 'apply', 'survey.yaml')).out).toContain(
      'survey revision 3: steps ports',
    );
    expect(api.asked[0]?.body).toEqual({ source: 'sonar: 1\nname: survey\n' });
  });

  test('problems of a start are printed too', async () => {
    api.answer = () =>
      problem(422, 'invalid', 'inputs are not valid', {
        problems: [{ path: 'inputs.hosts', message: 'is missing' }],
      });
    const { code, err } = await cli.run('scan', 'start', 'survey');
    expect(code).toBe(1);
    expect(err).toBe('inputs.hosts: is missing\nsonar: inputs are not valid\n');
  });

  test('a problem that is the whole message is told once', async () => {
    api.answer = () =>
      problem(422, 'invalid', 'scope: there is none', {
        problems: [{ path: 'scope', message: 'there is none' }],
      });
    expect((await cli.run('scan', 'start', 'survey')).err).toBe('sonar: scope: there is none\n');
  });
});
