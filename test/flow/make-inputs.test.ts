// Input files made of rows: merged in the pinned order, once for each owner, and without what the scope keeps out.
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { argvOf, dispatchOf, grantedInput } from '../fixtures/granted-inputs.ts';
import { type Laboratory, type Outputs, openLaboratory } from '../fixtures/laboratory.ts';
import { removeObject, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { prepare } from '../fixtures/scan-planning.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const survey = (input: string, mode = 'all', more = '') => `
sonar: 1
name: made-inputs
inputs: {lines: {type: lines, default: [one, two]}, words: {type: lines, default: [w1, w2, w1]}, note: {type: text, default: "hello"}}
steps:
  list:
    tags: [t]
    foreach: {in: inputs.lines}
    command: [list, "\${item}"]
    outputs: {rows: {path: rows.jsonl, optional: true, read: jsonl}, text: {path: text, optional: true}, plain: {path: plain, optional: true, read: lines}}
  use:
    tags: [t]
    needs: {list: ${mode}}
    inputs: {x: ${input}}
    command: [use, "\${in.x}"]
${more}  after:
    tags: [t]
    needs: {use: all}
    command: [after]
`;
const jsonl = (...rows: unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

async function fill(lab: Laboratory, scan: ScanRow, ...outputs: Outputs[]): Promise<void> {
  const worker = await lab.worker();
  await lab.plan(scan);
  await lab.place();
  for (const [index, attempt] of (await lab.published(scan, 'list')).entries())
    await lab.run(attempt, worker, outputs[index] ?? {});
  await lab.finalize();
  await lab.plan(scan);
  await lab.place();
}

const made = (scan: ScanRow) =>
  clone.database.rows<{ lines: number; refused: number }>(
    query`select lines::integer, refused::integer from sonar.input_file where scan_id = ${scan.scan_id} order by lines`,
  );
const contentOf = async (lab: Laboratory, scan: ScanRow): Promise<Record<string, string>[]> =>
  Promise.all((await lab.published(scan, 'use')).map((attempt) => grantedInput(lab, attempt, 'x')));
const step = async (scan: ScanRow) => {
  const [row] = await clone.database.rows<{ refused: number; note: string | null }>(query`
    select refused, note from sonar.scan_step where scan_id = ${scan.scan_id} and step = 'use'`);
  return row;
};

const hosts = [
  { rows: { 'rows.jsonl': jsonl({ host: 'b.example.com', n: 1 }, { host: 'a.example.com' }, { other: 1 }) } },
  { rows: { 'rows.jsonl': jsonl({ host: 'a.example.com' }, { host: ['c.example.com', 'd.example.com'] }) } },
];

test.each([
  [
    'picked',
    '{from: list.rows, pick: host}',
    'x.txt',
    'b.example.com\na.example.com\na.example.com\nc.example.com\nd.example.com\n',
  ],
  [
    'picked, each once',
    '{from: list.rows, pick: host, unique: true}',
    'x.txt',
    'b.example.com\na.example.com\nc.example.com\nd.example.com\n',
  ],
  [
    'picked as JSON',
    '{from: list.rows, pick: host, as: jsonl}',
    'x.jsonl',
    '"b.example.com"\n"a.example.com"\n"a.example.com"\n["c.example.com","d.example.com"]\n',
  ],
  [
    'whole as JSON, each once',
    '{from: list.rows, as: jsonl, unique: true}',
    'x.jsonl',
    '{"host":"b.example.com","n":1}\n{"host":"a.example.com"}\n{"other":1}\n{"host":["c.example.com","d.example.com"]}\n',
  ],
])('rows of all tasks are one file: %s', async (_what, input, path, content) => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(survey(input));
  await fill(lab, scan, ...hosts);
  expect(await contentOf(lab, scan)).toEqual([{ [path]: content }]);
  const [attempt] = await lab.published(scan, 'use');
  expect(await dispatchOf(lab, attempt!)).toMatchObject({ inputs: [{ name: 'x', as: 'file' }] });
  expect(await argvOf(lab, attempt!)).toEqual(['use', '<x>']);
});

test('files as they are follow one another, each beginning on a line of its own', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(
    survey('{from: list.text, as: file}').replace('[one, two]', '[one, two, three]'),
  );
  await fill(lab, scan, { text: { text: 'a\nb' } }, {}, { text: { text: 'c\n' } });
  expect(await contentOf(lab, scan)).toEqual([{ x: 'a\nb\nc\n' }]);
});

test.each([
  ['lines', '{from: list.plain, as: lines, unique: true}', { plain: { plain: 'a\r\n\nb\na' } }],
  [
    'raw lines of an output without a reader',
    '{from: list.text, as: lines, unique: true}',
    { text: { text: 'a\nb\n\na\n' } },
  ],
])('%s of a single parent are a file of that parent', async (_what, input, output) => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(survey(input, 'single'));
  await fill(lab, scan, output, output);
  expect(await contentOf(lab, scan)).toEqual([{ 'x.txt': 'a\nb\n' }, { 'x.txt': 'a\nb\n' }]);
  // The same bytes are one object.
  expect(
    await clone.database.rows(query`
      select count(*)::integer as files, count(distinct object_key)::integer as objects from sonar.input_file
      where scan_id = ${scan.scan_id}`),
  ).toEqual([{ files: 2, objects: 1 }]);
});

test.each([
  ['a list', '{from: inputs.words}', { 'x.txt': 'w1\nw2\nw1\n' }],
  ['a list, each line once', '{from: inputs.words, unique: true, as: file}', { 'x.txt': 'w1\nw2\n' }],
  ['a list as JSON', '{from: inputs.words, as: jsonl}', { 'x.jsonl': '"w1"\n"w2"\n"w1"\n' }],
  ['a text', '{from: inputs.note}', { x: 'hello' }],
])('an input of the scan is a file that all tasks share: %s', async (_what, input, content) => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(survey(input, 'single'));
  await fill(lab, scan);
  expect(await contentOf(lab, scan)).toEqual([content, content]);
  expect(await made(scan)).toHaveLength(1);
});

test('the items of a foreach share what is made of its All needs', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(
    survey('{from: list.rows, pick: host}', 'all', '    foreach: {in: inputs.words}\n').replace(
      '[use, "${in.x}"]',
      '[use, "${item}", "${in.x}"]',
    ),
  );
  await fill(lab, scan, ...hosts);
  expect(await contentOf(lab, scan)).toHaveLength(3);
  expect(new Set((await contentOf(lab, scan)).map((file) => JSON.stringify(file))).size).toBe(1);
  expect(await made(scan)).toEqual([{ lines: 5, refused: 0 }]);
});

describe('a file as target', () => {
  const target = '    target: ${in.x}\n';

  test('loses every line that the scope does not cover; they are counted, and the first is shown', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(survey('{from: list.rows, pick: host}', 'all', target));
    const lines = [
      'a.example.com',
      'elsewhere.org',
      'b.example.com',
      '-oX',
      'x y',
      '10.0.0.0/8',
      '0.0.0.0/0',
    ];
    await fill(lab, scan, { rows: { 'rows.jsonl': jsonl(...lines.map((host) => ({ host }))) } });
    expect(await contentOf(lab, scan)).toEqual([{ 'x.txt': 'a.example.com\nb.example.com\n10.0.0.0/8\n' }]);
    expect(await step(scan)).toEqual({ refused: 4, note: 'refused: "elsewhere.org" is outside the scope' });
  });

  test('that has no line left is no work, and neither has what comes after', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(survey('{from: list.rows, pick: host}', 'all', target));
    await fill(lab, scan, { rows: { 'rows.jsonl': jsonl({ host: 'elsewhere.org' }) } });
    await lab.plan(scan);
    expect((await lab.tasks(scan)).map((task) => [task.step, task.status, task.no_work])).toEqual([
      ['list', 'Completed', false],
      ['list', 'Completed', false],
      ['use', 'Completed', true],
      ['after', 'Completed', true],
    ]);
  });

  test('of a foreach that has no line left is one no-work task', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(
      survey('{from: list.rows, pick: host}', 'all', `${target}    foreach: {in: inputs.words}\n`),
    );
    await fill(lab, scan);
    expect(await lab.tasks(scan, 'use')).toMatchObject([{ status: 'Completed', no_work: true }]);
  });
});

test('a task is not placed before its file is there, whatever dies in between', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(survey('{from: list.rows, pick: host}', 'single'));
  await lab.plan(scan);
  await lab.place();
  for (const [index, attempt] of (await lab.published(scan, 'list')).entries())
    await lab.run(attempt, worker, hosts[index] ?? {});
  await lab.finalize();
  await lab.planOnce(scan);
  const pass = await lab.planOnce(scan);
  expect(pass.inputsDue).toBe(true);
  await lab.place();
  expect(await lab.published(scan, 'use')).toEqual([]);
  for (const statement of ['input_file.insert', 'input_file.release_tasks']) {
    const crashing = faultyDatabase(clone.database, (name) => name === statement);
    await expect(prepare(lab.with({ database: crashing }), pass)).rejects.toThrow('injected fault');
    await lab.place();
    expect(await lab.published(scan, 'use')).toEqual([]);
  }
  await prepare(lab, pass);
  await lab.place();
  expect(await lab.published(scan, 'use')).toHaveLength(2);
  expect((await lab.planOnce(scan)).inputsDue).toBe(false);
});

test('passes at once make one file and count its refused lines once', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(survey('{from: list.rows, pick: host}', 'all', '    target: ${in.x}\n'));
  await lab.plan(scan);
  await lab.place();
  for (const attempt of await lab.published(scan, 'list'))
    await lab.run(attempt, worker, {
      rows: { 'rows.jsonl': jsonl({ host: 'a.example.com' }, { host: 'elsewhere.org' }) },
    });
  await lab.finalize();
  let pass = await lab.planOnce(scan);
  while (!pass.inputsDue) pass = await lab.planOnce(scan);
  const elsewhere = Array.from({ length: 4 }, () => lab.with({ database: clone.open(2) }));
  await Promise.all(elsewhere.map((other) => prepare(other, pass)));
  expect(await made(scan)).toEqual([{ lines: 2, refused: 2 }]);
  expect(await step(scan)).toMatchObject({ refused: 2 });
});

test('a source that is gone fails the scan', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(survey('{from: list.rows, pick: host}'));
  await lab.plan(scan);
  await lab.place();
  for (const attempt of await lab.published(scan, 'list')) await lab.run(attempt, worker, hosts[0]);
  await lab.finalize();
  const files = await clone.database.rows<{ object_key: string }>(
    query`select f.object_key from sonar.output_file f join sonar.task t using (task_id) where t.scan_id = ${scan.scan_id}`,
  );
  for (const file of files) await removeObject(file.object_key);
  await lab.plan(scan);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Failed');
  const [row] = await clone.database.rows<{ status: string; reason: string }>(
    query`select status, reason from sonar.scan where scan_id = ${scan.scan_id}`,
  );
  expect(row).toMatchObject({ status: 'Failed', reason: expect.stringContaining('source_lost: step use') });
});
