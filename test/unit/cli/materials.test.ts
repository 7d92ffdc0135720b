// Secrets from standard input, and files that go with a definition or a scan.
import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandLine } from './command-line.ts';
import { type AskedFor, ScriptedApi } from './scripted-api.ts';

const now = '2026-01-01T00:00:00.000Z';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const line = new CommandLine();
const put = new Map<string, string>();
const api = new ScriptedApi((asked) => answer(asked));
const stored = new Set<string>();

function answer({ method, url, body }: AskedFor) {
  const { files = [] } = (body ?? {}) as { files?: { sha256: string; size: number }[] };
  switch (`${method} ${url.pathname}`) {
    case 'POST /v1/secrets':
      return { json: { name: 'key', updatedAt: now, updatedBy: 'me' } };
    case 'POST /v1/files':
      return {
        json: {
          files: files.map((file) =>
            stored.has(file.sha256)
              ? null
              : {
                  upload: '01a22b86-7f06-75d6-889c-8e946be0215e',
                  url: `${api.url}/put/${file.sha256}`,
                  headers: { 'content-length': String(file.size), 'if-none-match': '*' },
                },
          ),
        },
      };
    case 'POST /v1/files/confirm':
      for (const file of files) stored.add(file.sha256);
      return { json: { stored: files.length } };
    case 'POST /v1/definitions':
      return { json: { name: 'x', revision: 1, sha256: sha256(''), steps: ['a'], appliedAt: now } };
    default:
      put.set(url.pathname, JSON.stringify(body));
      return { status: 200, text: '' };
  }
}

beforeAll(async () => {
  await api.start();
  line.environment = { SONAR_API_URL: api.url, SONAR_TOKEN: 't' };
});
beforeEach(() => {
  api.asked.length = 0;
  put.clear();
  stored.clear();
});
afterAll(async () => {
  await api.stop();
  line.remove();
});

describe('secret set', () => {
  test('reads the value from standard input, without its last line end, and never shows it', async () => {
    line.stdin = 'p4ss word\n';
    const outcome = await line.run('secret', 'set', 'key');
    expect(outcome).toMatchObject({ code: 0, out: expect.stringContaining('secret key is set') });
    expect(outcome.out + outcome.err).not.toContain('p4ss');
    expect(api.asked).toMatchObject([{ body: { name: 'key', value: 'p4ss word' } }]);
  });

  test.each([
    ['without a value', '\n', 'key', 'standard input holds no value'],
    ['with a name that is none', 'x', 'Key', '"Key" cannot be the name of a secret'],
  ])('%s asks nothing', async (_what, stdin, name, message) => {
    line.stdin = stdin;
    expect(await line.run('secret', 'set', name)).toMatchObject({
      code: 2,
      err: expect.stringContaining(message),
    });
    expect(api.asked).toEqual([]);
  });
});

const definition = (files: string): string =>
  `sonar: 1\nname: x\nfiles: ${files}\nsteps: {a: {tags: [t], command: [c, "\${file.t}"]}}\n`;

describe('definition apply', () => {
  test('stores the files beside it first: each content once, folders with the paths below them', async () => {
    mkdirSync(join(line.folder, 'templates/deep/.git'), { recursive: true });
    writeFileSync(join(line.folder, 'templates/a.yaml'), '"A"');
    writeFileSync(join(line.folder, 'templates/deep/b.yaml'), '"B"');
    writeFileSync(join(line.folder, 'templates/deep/same.yaml'), '"A"');
    writeFileSync(join(line.folder, 'templates/deep/.git/config'), 'no');
    symlinkSync('/etc/passwd', join(line.folder, 'templates/link'));
    writeFileSync(join(line.folder, 'words.txt'), '"A"');
    writeFileSync(join(line.folder, 'x.yaml'), definition('{t: ./templates, w: words.txt}'));
    expect(await line.run('definition', 'apply', 'x.yaml')).toMatchObject({ code: 0 });
    const [a, b] = [sha256('"A"'), sha256('"B"')];
    expect(put).toEqual(
      new Map([
        [`/put/${a}`, '"A"'],
        [`/put/${b}`, '"B"'],
      ]),
    );
    expect(api.asked.at(-1)?.body).toMatchObject({
      files: {
        t: {
          kind: 'directory',
          entries: [
            { path: 'a.yaml', sha256: a },
            { path: 'deep/b.yaml', sha256: b },
            { path: 'deep/same.yaml', sha256: a },
          ],
        },
        w: { kind: 'file', entries: [{ path: 'words.txt', sha256: a }] },
      },
    });
  });

  test('uploads nothing that is stored already', async () => {
    writeFileSync(join(line.folder, 'w'), '"A"');
    stored.add(sha256('"A"'));
    writeFileSync(join(line.folder, 'y.yaml'), definition('{t: w}'));
    expect(await line.run('definition', 'apply', 'y.yaml')).toMatchObject({ code: 0 });
    expect(put.size).toBe(0);
  });

  test('names a file that is not there, and applies nothing', async () => {
    writeFileSync(join(line.folder, 'z.yaml'), definition('{t: ./nowhere}'));
    expect(await line.run('definition', 'apply', 'z.yaml')).toMatchObject({
      code: 2,
      err: expect.stringContaining('files.t: ./nowhere cannot be read'),
    });
    expect(api.asked).toEqual([]);
  });
});

describe('scan start', () => {
  const large = `[${Array.from({ length: 120_000 }, (_, n) => 100_000_000 + n).join(',\n')}`;
  const inputsOf = (): unknown =>
    (api.asked.find(({ url }) => url.pathname === '/v1/scans')?.body as { inputs?: unknown } | undefined)
      ?.inputs;
  const uploads = (): string[] => [...put.keys()].filter((path) => path.startsWith('/put/'));
  beforeEach(() => {
    writeFileSync(join(line.folder, 'large.txt'), `${large}]`);
    writeFileSync(join(line.folder, 'open.txt'), large);
    writeFileSync(join(line.folder, 'small.txt'), 'a\nb\n');
  });

  test('a list that is too large for a request is stored, and the scan names its hash', async () => {
    await line.run('scan', 'start', 'x', '--input', 'hosts=@large.txt', '--input', 'more=@small.txt');
    expect(uploads()).toEqual([`/put/${sha256(`${large}]`)}`]);
    expect(inputsOf()).toEqual({ hosts: { sha256: sha256(`${large}]`) }, more: 'a\nb' });
  });

  test('a name that is given several times is one stored list, each part on lines of its own', async () => {
    const words = ['hosts=@open.txt', 'hosts=]'].flatMap((word) => ['--input', word]);
    await line.run('scan', 'start', 'x', ...words, '--input', 'hosts= ', '--input', 'at=@@large.txt');
    const together = sha256(`${large}\n]\n \n`);
    expect(uploads()).toEqual([`/put/${together}`]);
    expect(inputsOf()).toEqual({ hosts: { sha256: together }, at: '@large.txt' });
  });
});
