// The definitions of the catalog and the examples: all valid, by the compiler and by the schema that editors use, with
// what their readers and their page promise.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { definitionJsonSchema } from '#sonar/definition/json-schema.ts';

const root = join(__dirname, '../../..');
const definitionsOf = (folder: string): string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => `${folder}/${name}`);
const catalog = definitionsOf('catalog');
const text = (path: string): string => readFileSync(join(root, path), 'utf8');
const compiled = (path: string) => {
  const result = compileDefinition(text(path));
  if (!result.ok) throw new Error(`${path}: ${JSON.stringify(result.problems)}`);
  return result.definition;
};

test.each([...catalog, ...definitionsOf('test/fixtures/examples')])('%s is valid', (path) => {
  expect(compileDefinition(text(path))).toMatchObject({ ok: true });
  // What a schema says of keys by pattern is no part of what zod reads of it.
  const schema = JSON.parse(JSON.stringify(definitionJsonSchema()), (key, value: unknown) =>
    key === 'propertyNames' ? undefined : value,
  ) as Parameters<typeof z.fromJSONSchema>[0];
  expect(z.fromJSONSchema(schema).safeParse(parse(text(path))).error).toBeUndefined();
});

test('the catalog has the surveys that its page lists, each under the name of its file', () => {
  expect(catalog.map((path) => `catalog/${compiled(path).name}.yaml`)).toEqual(catalog);
  const rows = text('catalog/README.md').matchAll(/^\| \[[a-z-]+\]\(([a-z-]+\.yaml)\)/gm);
  expect([...rows].map(([, file]) => `catalog/${file}`).toSorted()).toEqual(catalog.toSorted());
});

test.each(catalog)('%s: its page names every tag, program, input and file that it needs', (path) => {
  const definition = compiled(path);
  const name = path.replace('catalog/', '');
  const row = text('catalog/README.md')
    .split('\n')
    .find((line) => line.includes(`](${name})`));
  const needed = [
    ...definition.steps.flatMap(({ tags }) => tags),
    ...Object.keys(definition.inputs),
    ...Object.keys(definition.files),
    ...definition.steps.flatMap(({ command: [program] }) =>
      (program ?? []).flatMap((part) => (part.kind === 'text' ? [part.text] : [])),
    ),
  ];
  expect(needed.filter((word) => row?.includes(`\`${word}\``) !== true)).toEqual([]);
});

test.each(catalog)(
  '%s: what touches hosts is checked against the scope, and what tools write is read',
  (path) => {
    for (const { name, target, outputs, command } of compiled(path).steps) {
      const program = command[0]?.map((part) => (part.kind === 'text' ? part.text : '')).join('');
      const touches = !['names', 'report'].includes(name);
      expect([path, name, target !== null]).toEqual([path, name, touches]);
      for (const output of outputs.filter(({ name: own }) => !['html', 'pictures'].includes(own)))
        expect([program, output.read?.reader]).toEqual([program, expect.any(String)]);
    }
  },
);

test('the schema that editors are pointed at is the one of this language', () => {
  expect(JSON.parse(text('docs/definition.schema.json'))).toEqual(
    JSON.parse(JSON.stringify(definitionJsonSchema())),
  );
  for (const path of catalog)
    expect(text(path)).toContain('# yaml-language-server: $schema=../docs/definition.schema.json\n');
});
