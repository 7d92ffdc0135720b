// A dry run: what a scan would make, without anything being written.
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { type ServedApi, serveApi } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const scope = { allow: ['example.com', '10.0.0.0/8'], deny: ['bad.example.com'] };

const survey = `
sonar: 1
name: survey
inputs: {hosts: {type: hosts, required: true}, rate: {type: number, default: 50}}
files: {words: ./words.txt}
steps:
  each:
    tags: [probe]
    foreach: {in: inputs.hosts, unique: true}
    target: \${item}
    command: [probe, -r, "\${inputs.rate}", -w, "\${file.words}", "\${item}", "\${out.rows}"]
    outputs: {rows: {path: r, read: jsonl}}
    secrets: [key]
  bare:
    tags: [probe]
    foreach: {in: inputs.hosts}
    command: [bare, "\${item}"]
  batched:
    tags: [probe]
    foreach: {in: inputs.hosts, batch: 2}
    target: \${item}
    command: [many, "\${batch}"]
  whole:
    tags: [probe]
    inputs: {hosts: {from: inputs.hosts}}
    target: \${in.hosts}
    command: [all, "\${in.hosts}"]
  after:
    tags: [probe]
    needs: {each: all, bare: all}
    foreach: {in: each.rows, pick: host}
    target: \${item}
    command: [later, "\${item}"]
`;
const hosts = ['a.example.com', 'a.example.com', 'b.example.com', 'bad.example.com', '-x', '10.0.0.1'];

const plan = (api: ServedApi, body: object) =>
  api.ask('POST', '/v1/definitions/plan', { as: 'operator', body });
const stepOf = (answer: Awaited<ReturnType<typeof plan>>, step: string) =>
  answer.body.steps.find((candidate: { step: string }) => candidate.step === step);

/** Rows of every table that a start or a pass writes. */
const written = async () =>
  (
    await clone.database.rows<{ rows: number }>(query`
      select (select count(*) from sonar.scan) + (select count(*) from sonar.task) + (select count(*) from sonar.definition)
        + (select count(*) from sonar.stored_file) + (select count(*) from sonar.outbox_events) as rows`)
  )[0]?.rows;

test('root steps with their commands, what is refused and why, and what depends on results; nothing is written', async () => {
  await using api = await serveApi(clone, objects);
  const before = await written();
  const answer = await plan(api, { source: survey, inputs: { hosts }, scope });
  expect(answer).toMatchObject({ status: 200, body: { definition: 'survey', revision: null, tasks: 12 } });
  expect(stepOf(answer, 'each')).toMatchObject({
    tasks: 3,
    refused: 2,
    refusals: ['"bad.example.com" is denied by the scope', '"-x" is no host, URL or CIDR'],
    failing: 0,
    notes: [expect.stringContaining('secret "key"'), 'no live worker has the tag probe'],
    counted: true,
  });
  expect(stepOf(answer, 'each').samples.map((sample: { command: string[] }) => sample.command)).toEqual([
    ['probe', '-r', '50', '-w', '${file.words}', 'a.example.com', '${out.rows}'],
    ['probe', '-r', '50', '-w', '${file.words}', 'b.example.com', '${out.rows}'],
    ['probe', '-r', '50', '-w', '${file.words}', '10.0.0.1', '${out.rows}'],
  ]);
  expect(stepOf(answer, 'bare')).toMatchObject({
    tasks: 6,
    failing: 1,
    failures: [{ item: '-x', reason: expect.stringContaining('start with "-"') }],
  });
  expect(stepOf(answer, 'batched')).toMatchObject({
    tasks: 2,
    samples: [
      { item: { items: 2, first: 'a.example.com', last: 'a.example.com' }, command: ['many', '${batch}'] },
      { item: { items: 2, first: 'b.example.com', last: '10.0.0.1' } },
    ],
  });
  expect(stepOf(answer, 'whole')).toMatchObject({
    tasks: 1,
    refused: 2,
    samples: [{ item: null, command: ['all', '${in.hosts}'] }],
  });
  expect(stepOf(answer, 'after')).toMatchObject({ tasks: 0, dependsOn: ['each.rows', 'bare'], samples: [] });
  expect(await written()).toBe(before);
});

test('it counts what the scan then makes, and shows the first ones only', async () => {
  await using api = await serveApi(clone, objects);
  const { lab } = api;
  const source = survey.replace('files: {words: ./words.txt}\n', '').replace('-w, "${file.words}", ', '');
  const lines = Array.from({ length: 300 }, (_, index) => `h${index % 200}.example.com`);
  await api.ask('POST', '/v1/definitions', { body: { source } });
  const answer = await plan(api, { definition: 'survey', inputs: { hosts: lines }, scope, limit: 2 });
  expect(answer.body).toMatchObject({ revision: 1, tasks: 200 + 300 + 150 + 1 });
  expect(stepOf(answer, 'each').samples).toHaveLength(2);
  const scan = await lab.scan(source, { inputs: { hosts: lines }, scope });
  await lab.plan(scan);
  expect(await lab.tasks(scan)).toHaveLength(answer.body.tasks);
});

test('a list that is a stored file is read from there; an empty one is nothing to do', async () => {
  await using api = await serveApi(clone, objects);
  const list = `sonar: 1\nname: l\ninputs: {hosts: {type: lines}}\nsteps:\n  each: {tags: [t], foreach: {in: inputs.hosts}, command: [x, "\${item}"]}\n`;
  const bytes = Buffer.from('a\n\nb\n');
  const { createHash } = await import('node:crypto');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  await objects.write('plan/list', bytes, bytes.length);
  await clone.database.execute(
    query`insert into sonar.stored_file (workspace_id, sha256, size, object_key) values ('default', ${sha256}, ${bytes.length}, 'plan/list')`,
  );
  const stored = await plan(api, { source: list, inputs: { hosts: { sha256 } }, scope });
  expect(stepOf(stored, 'each')).toMatchObject({ tasks: 2, noWork: false });
  const empty = await plan(api, { source: list, inputs: { hosts: [] }, scope });
  expect(stepOf(empty, 'each')).toMatchObject({ tasks: 1, noWork: true, samples: [] });
});

test.each([
  ['faults of a text, with their places', { source: 'sonar: 1\nname: x\nstepz: {}\n', scope }, 'stepz'],
  ['an input that is missing', { source: survey, scope }, 'inputs.hosts'],
  ['no scope', { source: survey, inputs: { hosts } }, 'scope'],
])('%s are told like by a start', async (_what, body, path) => {
  await using api = await serveApi(clone, objects);
  const answer = await plan(api, body);
  expect(answer).toMatchObject({ status: 422, body: { code: 'invalid' } });
  expect(answer.body.problems.map((problem: { path: string }) => problem.path)).toContain(path);
});

test('a name that is not there, both or none of the two, and a viewer are refused', async () => {
  await using api = await serveApi(clone, objects);
  expect(await plan(api, { definition: 'nobody', scope })).toMatchObject({ status: 404 });
  expect(await plan(api, { scope })).toMatchObject({ status: 422 });
  expect(await plan(api, { scope, definition: 'a', source: survey })).toMatchObject({ status: 422 });
  expect(
    await api.ask('POST', '/v1/definitions/plan', { as: 'viewer', body: { source: survey } }),
  ).toMatchObject({ status: 403 });
});

test('an apply wakes the scans that follow the definition; a delete keeps it from being started', async () => {
  await using api = await serveApi(clone, objects);
  const { lab } = api;
  const source = `sonar: 1\nname: woken\nsteps:\n  only: {tags: [t], command: [x]}\n`;
  const scan = await lab.scan(source);
  await lab.scan(source, { pin: true });
  await lab.scan(source.replace('woken', 'other'));
  await api.ask('POST', '/v1/definitions', { body: { source: source.replace('[x]', '[y]') } });
  expect(api.woken).toEqual([scan.scan_id]);
  expect(await api.ask('DELETE', '/v1/definitions/woken')).toMatchObject({
    status: 200,
    body: { name: 'woken', deleted: true },
  });
  expect(await api.ask('DELETE', '/v1/definitions/woken')).toMatchObject({ status: 404 });
  expect(await api.ask('POST', '/v1/scans', { body: { definition: 'woken', scope } })).toMatchObject({
    status: 404,
  });
  expect(
    (await api.ask('GET', '/v1/definitions')).body.items.map((row: { name: string }) => row.name),
  ).not.toContain('woken');
});
