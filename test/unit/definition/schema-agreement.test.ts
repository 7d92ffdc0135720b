// What editors are told and what the compiler says: the schema refuses no definition that compiles, and every fault of
// shape that the compiler reports, the schema reports too.
import { parse } from 'yaml';
import { z } from 'zod';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { definitionJsonSchema } from '#sonar/definition/json-schema.ts';
import { exampleText } from '../../fixtures/examples.ts';
import { ok, withStep } from './problems-of.ts';

// Patterns of keys are no part of what zod reads of a schema; the compiler's own tests hold them.
const schema = z.fromJSONSchema(
  JSON.parse(JSON.stringify(definitionJsonSchema()), (key, value: unknown) =>
    key === 'propertyNames' ? undefined : value,
  ) as Parameters<typeof z.fromJSONSchema>[0],
);
const bySchema = (source: string): boolean => schema.safeParse(parse(source)).success;
const byCompiler = (source: string): boolean => compileDefinition(source).ok;

const single = 'needs: {other: single}';

test.each([
  ['domain-survey', exampleText('domain-survey')],
  ['cidr-survey', exampleText('cidr-survey')],
  ['group', withStep(...ok, single, 'foreach: {in: other.rows, group: ip}')],
  [
    'unique batch',
    withStep(
      ...ok,
      single,
      'foreach: {in: other.rows, pick: ip, unique: true, batch: 7, as: lines}',
      'stdin: ${batch}',
    ),
  ],
  ['split', withStep(...ok, 'foreach: {in: inputs.hosts, split: /24}')],
  ['files', withStep(...ok, single, 'foreach: {in: other.page, as: directory}')],
  [
    'inputs',
    withStep(
      ...ok,
      single,
      'inputs: {a: {from: other.rows, pick: ip, unique: true}, b: {from: inputs.hosts, as: jsonl}}',
    ),
  ],
  ['secrets by name', withStep(...ok, 'secrets: [a, b-c]')],
  ['secrets by variable', withStep(...ok, 'secrets: {A: a}')],
  ['definition files', `${withStep(...ok)}\nfiles: {a: ./a}`],
  ['a file input', withStep(...ok).replace('inputs: {', 'inputs: {f: {type: file, required: true}, ')],
])('both take %s', (_what, source) => {
  expect(compileDefinition(source)).toMatchObject({ ok: true });
  expect(schema.safeParse(parse(source)).error?.issues).toBeUndefined();
});

test.each([
  ['an unknown field', withStep(...ok, 'foreach: {in: inputs.hosts, unqiue: true}')],
  ['a flag that is none', withStep(...ok, 'foreach: {in: inputs.hosts, unique: yes please}')],
  ['a batch of nothing', withStep(...ok, 'foreach: {in: inputs.hosts, batch: 0}', 'stdin: ${batch}')],
  [
    'a batch that is too large',
    withStep(...ok, 'foreach: {in: inputs.hosts, batch: 100001}', 'stdin: ${batch}'),
  ],
  ['a size that is none', withStep(...ok, 'foreach: {in: inputs.hosts, split: 24}')],
  ['a form that is none', withStep(...ok, 'foreach: {in: inputs.hosts, as: file}')],
  ['a form of an input that is none', withStep(...ok, single, 'inputs: {a: {from: other.rows, as: csv}}')],
  ['foreach without source', withStep(...ok, 'foreach: {pick: a}')],
  ['a secret that is no name', withStep(...ok, 'secrets: [A B]')],
  ['a run', withStep(...ok, 'run: {}')],
  ['a type that is none', withStep(...ok).replace('type: hosts', 'type: files')],
])('neither takes %s', (_what, source) => {
  expect({ compiler: byCompiler(source), schema: bySchema(source) }).toEqual({
    compiler: false,
    schema: false,
  });
});
