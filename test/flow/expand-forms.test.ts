// The forms of foreach: unique, group, batch, split and files; each goes on after a crash, and nothing comes twice.
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { argvOf, dispatchOf, grantedInput } from '../fixtures/granted-inputs.ts';
import { type Laboratory, type Outputs, openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { expand } from '../fixtures/scan-planning.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const overLines = (foreach: string, command: string, more = '') => `
sonar: 1
name: over-lines
inputs: {lines: {type: lines, default: ""}}
steps:
  each:
    tags: [t]
    foreach: {in: inputs.lines, ${foreach}}
    command: [probe, ${command}]
${more}`;

const overRows = (foreach: string, command: string, more = '', mode = 'single') => `
sonar: 1
name: over-rows
inputs: {lines: {type: lines, default: "one"}}
steps:
  list:
    tags: [t]
    foreach: {in: inputs.lines}
    command: [list, "\${item}", "\${out.rows}"]
    outputs: {rows: {path: rows.jsonl, optional: true, read: jsonl}, files: {path: files, optional: true}}
  each:
    tags: [t]
    needs: {list: ${mode}}
    foreach: {${foreach}}
    command: [probe, ${command}]
${more}`;

const jsonl = (...rows: unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

/** Runs the tasks of the first step with the given outputs, in the order of their items, and plans what follows. */
async function fill(lab: Laboratory, scan: ScanRow, ...outputs: Outputs[]): Promise<void> {
  const worker = await lab.worker();
  await lab.plan(scan);
  await lab.place();
  for (const [index, attempt] of (await lab.published(scan, 'list')).entries())
    await lab.run(attempt, worker, outputs[index] ?? {});
  await lab.finalize();
}

const stepOf = async (scan: ScanRow, step: string) => {
  const [row] = await clone.database.rows<{ refused: number; note: string | null; state: string }>(query`
    select refused, note, state from sonar.scan_step where scan_id = ${scan.scan_id} and step = ${step}`);
  return row;
};
const leftOvers = async (scan: ScanRow) => {
  const [row] = await clone.database.rows<{ rows: number; open: number }>(query`
    select (select count(*)::integer from sonar.expansion_row r join sonar.expansion e using (expansion_id)
            where e.scan_id = ${scan.scan_id}) as rows,
           (select count(*)::integer from sonar.expansion where scan_id = ${scan.scan_id} and done_at is null) as open`);
  return row;
};
const items = async (lab: Laboratory, scan: ScanRow, step = 'each') =>
  (await lab.tasks(scan, step)).map((task) => task.item);

describe('unique', () => {
  test('makes each value one task, within one stream and over all parents of the step', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overRows('in: list.rows, pick: host, unique: true', '"${item}"'), {
      inputs: { lines: ['one', 'two'] },
    });
    await fill(
      lab,
      scan,
      {
        rows: {
          'rows.jsonl': jsonl({ host: 'a' }, { host: 'b' }, { host: 'a' }, { host: 1 }, { host: '1' }),
        },
      },
      { rows: { 'rows.jsonl': jsonl({ host: 'b' }, { host: 'c' }) } },
    );
    await lab.plan(scan);
    const texts = (await items(lab, scan)).map((item) => JSON.stringify(item));
    expect(new Set(texts)).toEqual(new Set(['1', '"1"', '"a"', '"b"', '"c"']));
    expect(texts).toHaveLength(5);
  });

  test('of which nothing is new comes to a no-work task of that parent', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overRows('in: list.rows, pick: host, unique: true', '"${item}"'), {
      inputs: { lines: ['one', 'two'] },
    });
    const rows = { rows: { 'rows.jsonl': jsonl({ host: 'a' }) } };
    await fill(lab, scan, rows, rows);
    await lab.plan(scan);
    expect((await lab.tasks(scan, 'each')).map(({ no_work: noWork, item }) => [noWork, item])).toEqual(
      expect.arrayContaining([
        [false, 'a'],
        [true, null],
      ]),
    );
  });

  test('holds for each scan on its own, and is free again when its expansion goes', async () => {
    const lab = openLaboratory(clone, objects);
    const source = overLines('unique: true', '"${item}"');
    for (const _ of [1, 2]) {
      const scan = await lab.scan(source, { inputs: { lines: ['a', 'a', 'b'] } });
      await lab.plan(scan);
      expect(await items(lab, scan)).toEqual(['a', 'b']);
    }
    await clone.database.execute(query`delete from sonar.expansion`);
    expect(await clone.database.rows(query`select 1 as one from sonar.unique_item`)).toEqual([]);
  });
});

test('split makes networks of one size of larger ones, and leaves the others as they are', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(overLines('split: /24', '"${item}"', '    target: ${item}'), {
    inputs: { lines: ['10.0.0.0/22', '10.1.0.7', '10.2.0.0/28', '192.0.2.0/23', 'a.example.com'] },
  });
  await lab.plan(scan);
  expect(await items(lab, scan)).toEqual([
    '10.0.0.0/24',
    '10.0.1.0/24',
    '10.0.2.0/24',
    '10.0.3.0/24',
    '10.1.0.7',
    '10.2.0.0/28',
    'a.example.com',
  ]);
});

describe('group', () => {
  const rows = jsonl(
    { ip: '10.0.0.1', port: 443, tls: true, note: null },
    { ip: '10.0.0.2', port: 22 },
    { ip: '10.0.0.1', port: 80, tls: false },
    { other: 'no address' },
    { ip: '10.0.0.1', port: 443, extra: { a: 1 } },
    { ip: '192.0.2.1', port: 1 },
  );

  test('makes one task of all rows with the same field, with distinct values of the others in their order', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(
      overRows(
        'in: list.rows, group: ip',
        '-p, "${join(item.port)}", "${item.ip}"',
        '    target: ${item.ip}',
      ),
    );
    await fill(lab, scan, { rows: { 'rows.jsonl': rows } });
    await lab.plan(scan);
    expect(await lab.tasks(scan, 'each')).toMatchObject([
      { item_ordinal: 0, item: { ip: '10.0.0.1', port: [443, 80], tls: [true, false], extra: [{ a: 1 }] } },
      { item_ordinal: 1, item: { ip: '10.0.0.2', port: [22] } },
    ]);
    expect(await stepOf(scan, 'each')).toMatchObject({
      refused: 1,
      note: 'refused: "192.0.2.1" is outside the scope',
    });
    expect(await leftOvers(scan)).toEqual({ rows: 0, open: 0 });
    await lab.place();
    const argv = await Promise.all(
      (await lab.published(scan, 'each')).map((attempt) => argvOf(lab, attempt)),
    );
    expect(argv).toEqual([
      ['probe', '-p', '443,80', '10.0.0.1'],
      ['probe', '-p', '22', '10.0.0.2'],
    ]);
  });

  test('gathers the rows of all tasks of an All need', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overRows('in: list.rows, group: ip', '"${join(item.port)}"', '', 'all'), {
      inputs: { lines: ['one', 'two'] },
    });
    await fill(
      lab,
      scan,
      { rows: { 'rows.jsonl': jsonl({ ip: '10.0.0.1', port: 1 }) } },
      { rows: { 'rows.jsonl': jsonl({ ip: '10.0.0.1', port: 2 }, { ip: '10.0.0.3', port: 3 }) } },
    );
    await lab.plan(scan);
    expect(await items(lab, scan)).toEqual([
      { ip: '10.0.0.1', port: [1, 2] },
      { ip: '10.0.0.3', port: [3] },
    ]);
  });

  test('that is too large for a command is refused alone', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overRows('in: list.rows, group: ip', '"${item.ip}"'));
    const many = Array.from({ length: 60_000 }, (_, port) => ({ ip: 'big', port: `port ${port}` }));
    await fill(lab, scan, { rows: { 'rows.jsonl': jsonl(...many, { ip: 'small', port: 1 }) } });
    await lab.plan(scan);
    expect(await items(lab, scan)).toEqual([{ ip: 'small', port: [1] }]);
    expect(await stepOf(scan, 'each')).toMatchObject({
      refused: 1,
      note: 'refused: a group is larger than 262144 bytes',
    });
  });

  test.each([
    ['while rows are staged', 'expansion.stage_rows', 2],
    ['while groups become tasks', 'expansion.insert_tasks', 2],
    ['before a page is dropped', 'expansion.drop_groups', 1],
  ])('goes on after a crash %s', async (_when, statement, time) => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overRows('in: list.rows, group: ip', '"${join(item.port)}"'));
    const many = Array.from({ length: 4_500 }, (_, index) => ({ ip: `host-${index % 150}`, port: index }));
    await fill(lab, scan, { rows: { 'rows.jsonl': jsonl(...many) } });
    const pass = await lab.planOnce(scan);
    const crashing = faultyDatabase(clone.database, (name, count) => name === statement && count === time);
    await expect(expand(lab.with({ database: crashing }), pass)).rejects.toThrow('injected fault');
    await lab.plan(scan);
    const made = (await items(lab, scan)) as { ip: string; port: number[] }[];
    expect(made.map(({ ip }) => ip)).toEqual(Array.from({ length: 150 }, (_, index) => `host-${index}`));
    expect(made.flatMap(({ port }) => port).toSorted((a, b) => a - b)).toEqual(many.map(({ port }) => port));
    expect(await leftOvers(scan)).toEqual({ rows: 0, open: 0 });
  });
});

describe('batch', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`);

  test('puts so many items in a file, in their order, and the rest in the last', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overLines('batch: 3', '-l, "${batch}"', '    stdin: ${batch}'), {
      inputs: { lines: lines(7) },
    });
    await lab.worker();
    await lab.plan(scan);
    expect(await lab.tasks(scan)).toMatchObject([
      { item_ordinal: 0, item: { items: 3, first: 'line 0', last: 'line 2' } },
      { item_ordinal: 3, item: { items: 3 } },
      { item_ordinal: 6, item: { items: 1, first: 'line 6', last: 'line 6' } },
    ]);
    await lab.place();
    const attempts = await lab.published(scan);
    expect(await argvOf(lab, attempts[0]!)).toEqual(['probe', '-l', '<_batch>']);
    expect(await dispatchOf(lab, attempts[0]!)).toMatchObject({
      inputs: [{ name: '_batch', as: 'file' }],
      stdin: [{ kind: 'in', name: '_batch' }],
    });
    const contents = await Promise.all(attempts.map((attempt) => grantedInput(lab, attempt, '_batch')));
    expect(contents).toEqual([
      { 'batch.txt': 'line 0\nline 1\nline 2\n' },
      { 'batch.txt': 'line 3\nline 4\nline 5\n' },
      { 'batch.txt': 'line 6\n' },
    ]);
  });

  test('takes what is unique and in scope, so that batches are full', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(
      overRows(
        'in: list.rows, pick: host, unique: true, batch: 2',
        '"${batch}"',
        '    target: ${item}\n',
        'all',
      ),
      { inputs: { lines: ['one', 'two'] } },
    );
    const host = (...names: string[]) => ({
      rows: { 'rows.jsonl': jsonl(...names.map((name) => ({ host: name }))) },
    });
    await fill(
      lab,
      scan,
      host('a.example.com', 'elsewhere.org', 'a.example.com', 'b.example.com', 'x\ny', 'c.example.com'),
      host('c.example.com', 'd.example.com'),
    );
    await lab.plan(scan);
    expect(await items(lab, scan)).toEqual([
      { items: 2, first: 'a.example.com', last: 'b.example.com' },
      { items: 2, first: 'c.example.com', last: 'd.example.com' },
    ]);
    expect(await stepOf(scan, 'each')).toMatchObject({ refused: 2 });
  });

  test('of rows is JSON Lines', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overRows('in: list.rows, batch: 10', '"${batch}"'));
    await fill(lab, scan, { rows: { 'rows.jsonl': jsonl({ a: 1, b: 'x\ny' }, { a: 2 }) } });
    await lab.plan(scan);
    await lab.place();
    const [attempt] = await lab.published(scan, 'each');
    expect(await grantedInput(lab, attempt!, '_batch')).toEqual({
      'batch.jsonl': '{"a":1,"b":"x\\ny"}\n{"a":2}\n',
    });
  });

  test('nothing of an item can become a second line of its file', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overRows('in: list.rows, pick: host, batch: 100', '"${batch}"'));
    const hostile = [
      'ok',
      'a\nb',
      'a\rb',
      'a\u2028b',
      'a\u0085b',
      'a\u0000b',
      '-oX',
      ' ',
      { no: 'text' },
      ['x'],
    ];
    await fill(lab, scan, { rows: { 'rows.jsonl': jsonl(...hostile.map((host) => ({ host }))) } });
    await lab.plan(scan);
    await lab.place();
    const [attempt] = await lab.published(scan, 'each');
    const { 'batch.txt': content } = await grantedInput(lab, attempt!, '_batch');
    expect(content?.split('\n')).toEqual(['ok', 'a\uFFFDb', '-oX', ' ', '']);
    expect(await stepOf(scan, 'each')).toMatchObject({ refused: 6 });
  });

  test('of nothing is a no-work task', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overLines('batch: 3', '"${batch}"'), { inputs: { lines: [] } });
    await lab.plan(scan);
    expect(await lab.tasks(scan)).toMatchObject([{ status: 'Completed', no_work: true }]);
    expect(await stepOf(scan, 'each')).toMatchObject({ state: 'settled' });
  });

  test.each([
    ['while items are staged', 'expansion.stage_rows', 2],
    ['while batches become tasks', 'expansion.insert_tasks', 2],
    ['between a file and its task', 'expansion.insert_task_files', 1],
    ['before what is made is dropped', 'expansion.drop_rows_to', 2],
  ])('goes on after a crash %s', async (_when, statement, time) => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overLines('unique: true, batch: 10', '"${batch}"'), {
      inputs: { lines: [...lines(4_200), ...lines(100)] },
    });
    const pass = await lab.planOnce(scan);
    const crashing = faultyDatabase(clone.database, (name, count) => name === statement && count === time);
    await expect(expand(lab.with({ database: crashing }), pass)).rejects.toThrow('injected fault');
    const before = (await lab.tasks(scan)).map((task) => task.task_id);
    await lab.plan(scan);
    const after = await lab.tasks(scan);
    expect(after.map((task) => task.item_ordinal)).toEqual(
      Array.from({ length: 420 }, (_, index) => index * 10),
    );
    expect(after.slice(0, before.length).map((task) => task.task_id)).toEqual(before);
    const files = await clone.database.rows<{ files: number }>(query`
      select count(*)::integer as files from sonar.task_file f join sonar.task t using (task_id) where t.scan_id = ${scan.scan_id}`);
    expect(files).toEqual([{ files: 420 }]);
    expect(await leftOvers(scan)).toEqual({ rows: 0, open: 0 });
  });

  test('passes at once make every batch once', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overLines('batch: 7', '"${batch}"'), { inputs: { lines: lines(2_500) } });
    const pass = await lab.planOnce(scan);
    const elsewhere = Array.from({ length: 3 }, () => lab.with({ database: clone.open(2) }));
    await Promise.all(elsewhere.map((other) => expand(other, pass)));
    await lab.plan(scan);
    expect((await lab.tasks(scan)).map((task) => task.item_ordinal)).toEqual(
      Array.from({ length: Math.ceil(2_500 / 7) }, (_, index) => index * 7),
    );
  });
});

describe('files', () => {
  const files = { 'a.txt': 'A', 'deep/b.txt': 'B', '-rf.txt': 'C' };

  test('of an output are one item each, and the item is the file itself', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(
      overRows('in: list.files', '"${item}", "${item.path}"', '    allowOptionItems: true'),
    );
    await fill(lab, scan, { files });
    await lab.plan(scan);
    await lab.place();
    const attempts = await lab.published(scan, 'each');
    expect(await argvOf(lab, attempts[0]!)).toEqual(['probe', '<_item>', '-rf.txt']);
    expect(await dispatchOf(lab, attempts[0]!)).toMatchObject({ inputs: [{ name: '_item', as: 'file' }] });
    const contents = await Promise.all(attempts.map((attempt) => grantedInput(lab, attempt, '_item')));
    expect(contents).toEqual([{ '-rf.txt': 'C' }, { 'a.txt': 'A' }, { 'deep/b.txt': 'B' }]);
  });

  test('of all tasks go in batches into one folder each, once by their content', async () => {
    const lab = openLaboratory(clone, objects);
    const scan = await lab.scan(overRows('in: list.files, unique: true, batch: 3', '"${batch}"', '', 'all'), {
      inputs: { lines: ['one', 'two'] },
    });
    await fill(lab, scan, { files }, { files: { 'a.txt': 'A', 'b.txt': 'D' } });
    await lab.plan(scan);
    await lab.place();
    const attempts = await lab.published(scan, 'each');
    expect(await dispatchOf(lab, attempts[0]!)).toMatchObject({
      inputs: [{ name: '_batch', as: 'directory' }],
    });
    const contents = await Promise.all(attempts.map((attempt) => grantedInput(lab, attempt, '_batch')));
    expect(contents).toEqual([
      { '000000/-rf.txt': 'C', '000000/a.txt': 'A', '000000/deep/b.txt': 'B' },
      { '000001/b.txt': 'D' },
    ]);
  });
});
