// A scan starts once for its client key, within a scope, with inputs that are what they should be.

import { defaultWorkspace } from '#sonar/contracts/ids.ts';
import type { StartScan } from '#sonar/contracts/scan-api.ts';
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { startScan } from '#sonar/flow/start-scan.ts';
import { scanScope } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const scope = { allow: ['example.com'] };
const withInputs = `
sonar: 1
name: with-inputs
inputs:
  domains: {type: domains, required: true}
  ports: {type: text, default: 1-1000}
  rate: {type: number}
  deep: {type: flag, default: false}
  constructor: {type: text}
steps:
  only: {tags: [t], command: ["true"]}
`;

const apply = (source: string) => applyDefinition(clone.database, defaultWorkspace, source);
const start = (request: Partial<StartScan> = {}) =>
  startScan(clone.database, defaultWorkspace, {
    definition: 'with-inputs',
    scope,
    ...request,
    inputs: { domains: 'a.example.com', ...request.inputs },
  });
const problemsOf = async (request: Partial<StartScan>) => {
  const fault = await start(request).then(
    () => undefined,
    (error: unknown) =>
      error as { code: string; details: { problems: { path: string; message: string; hint?: string }[] } },
  );
  expect(fault).toMatchObject({ code: 'invalid' });
  return fault?.details.problems ?? [];
};
const countScans = async () =>
  (await clone.database.rows<{ scans: number }>(query`select count(*)::integer as scans from sonar.scan`))[0]
    ?.scans;

test('the same client key and request is the same scan, however many ask at once', async () => {
  await apply(withInputs);
  const answers = await Promise.all(Array.from({ length: 10 }, () => start({ clientKey: 'k' })));
  expect(new Set(answers.map(({ scan }) => scan.scan_id)).size).toBe(1);
  expect(answers.filter(({ created }) => created)).toHaveLength(1);
  expect(await countScans()).toBe(1);
});

test('the same client key with another request is a conflict that names the scan', async () => {
  await apply(withInputs);
  const { scan } = await start({ clientKey: 'k' });
  for (const other of [
    { inputs: { domains: 'b.example.com' } },
    { scope: { allow: ['example.org'] } },
    { name: 'n' },
    { pin: true },
  ])
    await expect(start({ clientKey: 'k', ...other })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(scan.scan_id),
    });
  expect(await countScans()).toBe(1);
});

test('a start again is the same scan even when the definition has a newer revision', async () => {
  await apply(withInputs);
  const { scan } = await start({ clientKey: 'k' });
  await apply(withInputs.replace('1-1000', '1-2000').replace('{type: text}', '{type: text, required: true}'));
  const again = await start({ clientKey: 'k' });
  expect(again).toMatchObject({ created: false, scan: { scan_id: scan.scan_id, definition_revision: 1 } });
});

test('without a client key every start is a scan of its own', async () => {
  await apply(withInputs);
  await start();
  await start();
  expect(await countScans()).toBe(2);
});

test('a scan without any scope is refused, and with a scope that does not parse every fault is named', async () => {
  await apply(withInputs);
  expect(await problemsOf({ scope: undefined })).toEqual([
    {
      path: 'scope',
      message: 'the scan has no scope',
      hint: 'say what may be scanned: --allow example.com, or scope in the definition',
    },
  ]);
  const faults = await problemsOf({ scope: { allow: ['10.0.0.0/33', 'example.com'], deny: ['..'] } });
  expect(faults.map(({ path }) => path)).toEqual(['scope.allow[0]', 'scope.deny[0]']);
});

test("the definition's scope is the default", async () => {
  await apply(withInputs.replace('steps:', 'scope: {allow: [example.net]}\nsteps:'));
  const { scan } = await start({ scope: undefined });
  expect(await scanScope(clone.database, scan.scan_id)).toEqual({ allow: ['example.net'], deny: [] });
});

test('an unknown input is refused with the name that was meant', async () => {
  await apply(withInputs);
  expect(await problemsOf({ inputs: { domain: 'x', zzz: '1' } })).toEqual([
    {
      path: 'inputs.domain',
      message: expect.stringContaining('`domain`'),
      hint: expect.stringContaining('mean `domains`'),
    },
    {
      path: 'inputs.zzz',
      message: expect.stringContaining('`zzz`'),
      hint: expect.stringMatching(/\bports\b/),
    },
  ]);
});

test('all faults come at once', async () => {
  await apply(withInputs);
  const problems = await problemsOf({
    scope: { allow: ['...'] },
    inputs: { domains: undefined as never, prots: '1', rate: 'fast', deep: 'maybe', ports: ['1', '2'] },
  });
  expect(problems.map(({ path }) => path).toSorted()).toEqual([
    'inputs.deep',
    'inputs.domains',
    'inputs.ports',
    'inputs.prots',
    'inputs.rate',
    'scope.allow[0]',
  ]);
  expect(await countScans()).toBe(0);
});

test('values that no database text can hold are refused by name', async () => {
  await apply(withInputs);
  const problems = await problemsOf({
    inputs: { domains: ['ok.example.com', 'nul\0'], ports: 'half \ud800 pair' },
  });
  expect(problems.map(({ path }) => path).toSorted()).toEqual(['inputs.domains', 'inputs.ports']);
});

test('lists are kept with an item a line, scalars as their text, and an input named like a method is no trap', async () => {
  await apply(withInputs);
  await start({ inputs: { domains: [' a.example.com ', '', 'b.example.com'], rate: 1.5, deep: true } });
  const inputs = await clone.database.rows(query`select name, content from sonar.scan_input order by name`);
  expect(inputs).toEqual([
    { name: 'constructor', content: '' },
    { name: 'deep', content: 'true' },
    { name: 'domains', content: 'a.example.com\nb.example.com' },
    { name: 'ports', content: '1-1000' },
    { name: 'rate', content: '1.5' },
  ]);
});

test('a definition that is not there is named with the way out', async () => {
  await expect(start({ definition: 'nothing' })).rejects.toMatchObject({
    code: 'not_found',
    message: expect.stringContaining('sonar definition apply'),
  });
});

test('a start that fails half way leaves nothing, and its key is free', async () => {
  await apply(withInputs);
  const crashing = faultyDatabase(clone.database, (statement) => statement === 'step.insert');
  const request = { definition: 'with-inputs', scope, clientKey: 'k', inputs: { domains: 'a.example.com' } };
  await expect(startScan(crashing, defaultWorkspace, request)).rejects.toThrow('injected fault');
  expect(await countScans()).toBe(0);
  expect(await startScan(clone.database, defaultWorkspace, request)).toMatchObject({ created: true });
});

test('the same text again is the same revision, also when many apply it at once', async () => {
  const revisions = await Promise.all(Array.from({ length: 8 }, () => apply(oneStep)));
  expect(new Set(revisions.map(({ revision }) => revision))).toEqual(new Set([1]));
  expect(await apply(oneStep.replace('probe', 'look'))).toMatchObject({ revision: 2 });
});
