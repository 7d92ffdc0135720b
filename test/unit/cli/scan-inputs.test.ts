import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseInputs, parseScope } from '#sonar/cli/scan-inputs.ts';
import { startBody } from '#sonar/cli/scan-start.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sonar-inputs-'));
  writeFileSync(join(folder, 'hosts.txt'), '\ufeffa.example.test\r\nb.example.test\r\n\r\n');
  writeFileSync(join(folder, 'latin1.txt'), Buffer.from([0x61, 0xe9, 0x0a]));
  writeFileSync(
    join(folder, 'scope.yaml'),
    'allow: [example.test, 192.0.2.0/24]\ndeny:\n  - admin.example.test\n',
  );
  writeFileSync(join(folder, 'typo.yaml'), 'alow: [example.test]\n');
  writeFileSync(join(folder, 'broken.yaml'), 'allow: [a\nb: ]\n');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a value is kept as it is written, equals signs and all', () => {
  expect(parseInputs(['ports=80,443', 'query=a=b', 'n=08', 'none='], folder)).toEqual({
    ports: '80,443',
    query: 'a=b',
    n: '08',
    none: '',
  });
});

test('@file is its text, without byte order mark, carriage returns and blank end', () => {
  expect(parseInputs(['hosts=@hosts.txt'], folder)).toEqual({ hosts: 'a.example.test\nb.example.test' });
});

test('a name given several times is a list, files by their lines; @@ is an @', () => {
  expect(parseInputs(['hosts=@hosts.txt', 'hosts=c.example.test', 'at=@@home'], folder)).toEqual({
    hosts: ['a.example.test', 'b.example.test', 'c.example.test'],
    at: '@home',
  });
});

test('an input called __proto__ stays an input', () => {
  expect(Object.keys(parseInputs(['__proto__=x'], folder))).toEqual(['__proto__']);
});

test.each([
  [['hosts'], '--input hosts: write it as name=value or name=@file'],
  [['=x'], '--input =x: write it as name=value or name=@file'],
  [['hosts=@'], '--input hosts=@: name the file after the @'],
  [['hosts=@gone.txt'], '--input hosts: gone.txt cannot be read: there is no such file'],
  [['hosts=@.'], '--input hosts: . cannot be read: it is a folder, not a file'],
  [['hosts=@latin1.txt'], '--input hosts: latin1.txt is not UTF-8 text; convert it: iconv -t UTF-8'],
])('inputs %j are refused by name', (words, message) => {
  expect(() => parseInputs(words, folder)).toThrow(expect.objectContaining({ code: 'usage', message }));
});

test('allow, deny and a scope file count together', () => {
  expect(parseScope({ allow: ['127.0.0.0/8'], deny: ['127.0.0.9'], scope: 'scope.yaml' }, folder)).toEqual({
    allow: ['127.0.0.0/8', 'example.test', '192.0.2.0/24'],
    deny: ['127.0.0.9', 'admin.example.test'],
  });
});

test('without any, the scope of the definition holds', () => {
  expect(parseScope({}, folder)).toBeUndefined();
});

test.each([
  [{ deny: ['127.0.0.1'] }, /^--deny alone allows nothing/],
  [{ scope: 'gone.yaml' }, /^--scope: gone.yaml cannot be read: there is no such file$/],
  [{ scope: 'typo.yaml' }, /^--scope typo.yaml: .*\nallow: \[/s],
  [{ scope: 'broken.yaml' }, /^broken.yaml:\d+:\d+: /],
])('scope %j is refused by name', (options, message) => {
  expect(() => parseScope(options, folder)).toThrow(
    expect.objectContaining({ code: 'usage', message: expect.stringMatching(message) }),
  );
});

test('a start always carries a client key, and the given one when there is one', () => {
  expect(startBody('survey', {}, folder).clientKey).toMatch(/^cli-[0-9a-f-]{36}$/);
  expect(startBody('survey', { key: 'nightly-1', pin: true }, folder)).toEqual({
    definition: 'survey',
    clientKey: 'nightly-1',
    inputs: {},
    pin: true,
  });
});

test('a file in place of a name is told apart', () => {
  expect(() => startBody('./survey.yaml', {}, folder)).toThrow(/sonar definition apply .\/survey.yaml/);
});
