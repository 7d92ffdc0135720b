// Record types that a definition declares: what is refused, and what becomes of the rest.
import { parse } from 'yaml';
import { z } from 'zod';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { definitionJsonSchema } from '#sonar/definition/json-schema.ts';
import { problemAt } from '#sonar/definition/problem-at.ts';
import { problemsOf } from './problems-of.ts';

const text = (records: string, read: string): string =>
  [
    'sonar: 1',
    'name: test',
    `records: ${records}`,
    'steps:',
    '  scan:',
    '    tags: [tool]',
    '    command: [tool]',
    `    outputs: {a: {stdout: true, read: ${read}}}`,
  ].join('\n');
const login = '{login: {key: [host, form], normalize: {host: host}}}';
const mapped = '{format: jsonl, record: login, fields: {host: a.b, form: f}}';

test('a declared type is compiled, and used like any other', () => {
  expect(compileDefinition(text(login, mapped))).toMatchObject({
    ok: true,
    definition: {
      records: { login: { key: ['host', 'form'], normalize: { host: 'host' } } },
      steps: [{ outputs: [{ read: { record: 'login', fields: { host: 'a.b', form: 'f' } } }] }],
    },
  });
});

test('of lines, a type with one key field takes the line', () => {
  expect(compileDefinition(text('{bucket: {key: [name]}}', '{format: lines, record: bucket}'))).toMatchObject(
    { ok: true, definition: { steps: [{ outputs: [{ read: { fields: { name: 'line' } } }] }] } },
  );
});

test.each([
  [
    "a name of Sonar's own",
    '{domain: {key: [a]}}',
    'jsonl',
    ["3:11 records.domain: `domain` is a record type of Sonar's own | give yours another name"],
  ],
  [
    'a name that is none',
    '{Login Form: {key: [a]}}',
    'jsonl',
    [
      '3:11 records.Login Form: `Login Form` cannot be the name of a record type | a name is a lower-case letter, then up to 62 of a–z, 0–9, - and _',
    ],
  ],
  [
    'no key',
    '{login: {normalize: {}}}',
    'jsonl',
    ['3:18 records.login.key: `key` is missing | The fields that tell two records apart.'],
  ],
  ['an empty key', '{login: {key: []}}', 'jsonl', ['3:24 records.login.key: a key has 1 to 8 fields, not 0']],
  [
    'a field twice, and one that is none',
    '{login: {key: [a, a, 1x]}}',
    'jsonl',
    [
      '3:28 records.login.key[1]: the key has the field `a` twice',
      "3:31 records.login.key[2]: `1x` cannot be the name of a record's field | a letter, then letters, digits and _",
    ],
  ],
  [
    'a spelling of what is no key field, and one that is none',
    '{login: {key: [host], normalize: {hots: host, host: hots}}}',
    'jsonl',
    [
      '3:44 records.login.normalize.hots: `hots` is no field of the key | did you mean `host`?',
      '3:62 records.login.normalize.host: `hots` is none of domain, address, host, url, lower | did you mean `host`?',
    ],
  ],
  [
    'a type that nobody declares',
    login,
    '{format: jsonl, record: logn}',
    [
      '8:63 steps.scan.outputs.a.read.record: `logn` is none of login, domain, address, dns, service, endpoint, certificate, technology, finding | did you mean `login`?',
    ],
  ],
  [
    'a key field that is not mapped',
    login,
    '{format: jsonl, record: login, fields: {host: a}}',
    [
      '8:78 steps.scan.outputs.a.read.fields: the record `login` needs the field `form` | add `form: ROW FIELD` under `fields`',
    ],
  ],
])('%s is refused, with its place', (_what, records, read, problems) => {
  expect(problemsOf(text(records, read))).toEqual(problems);
});

test('editors take what the compiler takes, and refuse a shape that it refuses', () => {
  const schema = z.fromJSONSchema(
    JSON.parse(JSON.stringify(definitionJsonSchema()), (key, value: unknown) =>
      key === 'propertyNames' ? undefined : value,
    ) as Parameters<typeof z.fromJSONSchema>[0],
  );
  const takes = (records: string): boolean => schema.safeParse(parse(text(records, mapped))).success;
  expect(takes(login)).toBe(true);
  expect(takes('{login: {key: []}}')).toBe(false);
  expect(takes('{login: {key: [a], normalize: {a: upper}}}')).toBe(false);
});

test('a fault that the database knows of has its place in the text', () => {
  expect(problemAt(text(login, mapped), ['records', 'login'], 'message', null)).toMatchObject({
    path: 'records.login',
    line: 3,
    column: 11,
  });
  expect(problemAt(text(login, mapped), ['nothing'], 'message', null)).toMatchObject({ line: 1, column: 1 });
});
