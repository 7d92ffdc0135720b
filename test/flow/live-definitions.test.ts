// A scan that runs follows its definition: at its next pass it takes the newest revision, step by step.
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { pauseScan } from '#sonar/flow/pause-scan.ts';
import { planScan } from '#sonar/flow/plan-scan.ts';
import { startScan } from '#sonar/flow/start-scan.ts';
import { deleteDefinition } from '#sonar/stores/definitions.ts';
import { stepsOfScan } from '#sonar/stores/steps.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { each, edit, first, now, runningScan, statuses, stepRow, text } from '../fixtures/edited-scan.ts';
import { argvOf, dispatchOf } from '../fixtures/granted-inputs.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const running = (source?: string, request?: Parameters<typeof runningScan>[3]) =>
  runningScan(clone, objects, source, request);

test('what is placed after an edit is rendered from it; what was placed before keeps its own', async () => {
  const { lab, worker, scan } = await running();
  const [a] = await lab.published(scan);
  await edit(lab, text(each('command: [two, -x, "${item}"], timeout: 7m')));
  await lab.plan(scan);
  expect(await argvOf(lab, a!)).toEqual(['one', 'a']);
  await lab.run(a!, worker);
  await lab.place();
  const [b] = await lab.published(scan);
  expect(await argvOf(lab, b!)).toEqual(['two', '-x', 'b']);
  expect(await dispatchOf(lab, b!)).toMatchObject({ timeoutMs: 420_000 });
  expect(a).toMatchObject({ definition_revision: 1 });
  expect(b).toMatchObject({ definition_revision: 2 });
  expect(await now(lab, scan)).toMatchObject({ definition_revision: 2 });
});

test('of a running task the retry budget, the exit codes and the readers are those of its own revision', async () => {
  const { lab, worker, scan } = await running(text(each('command: [one, "${item}"], retry: 1')));
  const [a] = await lab.published(scan);
  await edit(
    lab,
    text(
      '  each: {tags: [t], foreach: {in: inputs.lines}, command: [two, "${item}"], outputs: {rows: {path: r, optional: true, read: {format: jsonl, record: domain, fields: {name: host}}}}}\n',
    ),
  );
  await lab.plan(scan);
  await lab.run(a!, worker, {}, { outcome: 'failed', exitCode: 1 });
  expect((await lab.tasks(scan))[0]).toMatchObject({ status: 'Pending', retries: 1 });
  // b is of the second revision, and what it leaves is read by that; no JSON is no record of it.
  await lab.place();
  const [b] = await lab.published(scan);
  await lab.run(b!, worker, { rows: { r: '{"host":"x.example.com"}\n' } });
  await lab.finalize();
  const records = await lab.database.rows<{ key: string }>(query`select key from sonar.inventory`);
  expect(records).toEqual([{ key: 'x.example.com' }]);
});

test('tags, maxConcurrent and secrets are those of the newest revision that the scan took', async () => {
  const { lab, worker, scan } = await running();
  await lab.worker({ name: 'w2', tags: ['u'], slots: 8 });
  const [a] = await lab.published(scan);
  await lab.run(a!, worker);
  await edit(
    lab,
    text(each('command: [two, "${item}"], maxConcurrent: 1').replace('tags: [t]', 'tags: [u]')),
  );
  await lab.plan(scan);
  expect((await lab.place())?.placed).toMatchObject([{ tag: 'u', tasks: 1 }]);
  await edit(lab, text(each('command: [two, "${item}"], secrets: [key]')));
  await lab.plan(scan);
  await lab.place();
  expect(await stepRow(lab, scan, 'each')).toMatchObject({ missing_secrets: ['key'] });
  expect(await statuses(lab, scan)).toEqual(['Completed', 'Published', 'Pending']);
});

test('a pinned scan takes no other revision', async () => {
  const { lab, worker, scan } = await running(first, { pin: true });
  await edit(lab, text(`${each('command: [two, "${item}"]')}  more: {tags: [t], command: [m]}\n`));
  await lab.plan(scan);
  await lab.run((await lab.published(scan))[0]!, worker);
  await lab.place();
  expect(await argvOf(lab, (await lab.published(scan))[0]!)).toEqual(['one', 'b']);
  expect(await now(lab, scan)).toMatchObject({ definition_revision: 1, pinned: true });
  expect(await stepRow(lab, scan, 'more')).toBeUndefined();
});

test('a new step begins like any other: root, over a settled step, and a child of each task that had finished', async () => {
  const { lab, worker, scan } = await running(
    text(`${each('command: [one, "${item}"]')}  wait: {tags: [never], command: [w]}\n`),
  );
  for (let round = 0; round < 3; round += 1) {
    await lab.place();
    for (const attempt of await lab.published(scan)) await lab.run(attempt, worker, { rows: { r: 'row\n' } });
    await lab.finalize();
    await lab.plan(scan);
  }
  expect(await stepRow(lab, scan, 'each')).toMatchObject({ state: 'settled' });
  await edit(
    lab,
    text(
      `${each('command: [one, "${item}"]')}  wait: {tags: [never], command: [w]}\n` +
        '  root: {tags: [t], foreach: {in: inputs.lines}, command: [r, "${item}"]}\n' +
        '  child: {tags: [t], needs: {each: single}, command: [c]}\n' +
        '  rows: {tags: [t], needs: {each: single}, foreach: {in: each.rows}, command: [x, "${item.line}"]}\n' +
        '  all: {tags: [t], needs: {each: all}, inputs: {r: {from: each.rows, as: directory}}, command: [a, "${in.r}"]}\n',
    ),
  );
  await lab.plan(scan);
  expect(await statuses(lab, scan, 'root')).toHaveLength(3);
  expect(await statuses(lab, scan, 'child')).toHaveLength(3);
  expect((await lab.tasks(scan, 'rows')).map((task) => task.item)).toEqual([
    { line: 'row' },
    { line: 'row' },
    { line: 'row' },
  ]);
  expect(await statuses(lab, scan, 'all')).toEqual(['Pending']);
  // Asking again makes nothing.
  expect(await lab.plan(scan)).toBe(0);
});

test('finished files without a reader of their own are read by the one that a new step came with', async () => {
  const plain = '  list: {tags: [t], command: [l], outputs: {rows: {path: r}}}\n';
  const { lab, worker, scan } = await running(text(`${plain}  wait: {tags: [never], command: [w]}\n`));
  await lab.run((await lab.published(scan, 'list'))[0]!, worker, { rows: { r: 'x\ny\n' } });
  await lab.plan(scan);
  await edit(
    lab,
    text(
      `${plain.replace('path: r', 'path: r, read: lines')}  wait: {tags: [never], command: [w]}\n` +
        '  rows: {tags: [t], needs: {list: all}, foreach: {in: list.rows, pick: line}, command: [x, "${item}"]}\n',
    ),
  );
  await lab.plan(scan);
  expect((await lab.tasks(scan, 'rows')).map((task) => task.item)).toEqual(['x', 'y']);
});

test('an edit of a reader moves no row of results that are there: each file is read by its own revision', async () => {
  const list = (read: string) =>
    `  list: {tags: [t], foreach: {in: inputs.lines}, command: [l, "\${item}"], outputs: {rows: {path: r, read: ${read}}}}\n`;
  const over = (read: string) =>
    text(
      `${list(read)}  rows: {tags: [t], needs: {list: all}, foreach: {in: list.rows, pick: host}, command: [x, "\${item}"]}\n`,
    );
  const { lab, worker, scan } = await running(over('jsonl'));
  await lab.run((await lab.published(scan))[0]!, worker, { rows: { r: '{"host":"a"}\n' } });
  await edit(lab, over('csv'));
  await lab.plan(scan);
  for (let round = 0; round < 3; round += 1) {
    await lab.place();
    for (const attempt of await lab.published(scan, 'list'))
      await lab.run(attempt, worker, { rows: { r: 'host,port\nb,1\n' } });
    await lab.finalize();
    await lab.plan(scan);
  }
  expect((await lab.tasks(scan, 'rows')).map((task) => task.item)).toEqual(['a', 'b', 'b']);
});

test('the first task pins needs, foreach, inputs and output names; a change of those is said and not taken', async () => {
  const { lab, worker, scan } = await running();
  await edit(
    lab,
    text(each('command: [two, "${item}"]').replace('in: inputs.lines}', 'in: inputs.lines, unique: true}')),
  );
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({
    revision: 2,
    revision_note: expect.stringContaining('revision 2 changes its foreach, for new scans'),
  });
  await lab.run((await lab.published(scan))[0]!, worker);
  await lab.place();
  expect(await argvOf(lab, (await lab.published(scan))[0]!)).toEqual(['two', 'b']);
  // For a new scan it is what it says.
  const { scan: later } = await startScan(lab.database, 'default', {
    definition: 'live',
    inputs: { lines: 'a\na' },
    scope: { allow: ['example.com'] },
  });
  await lab.plan(later);
  expect(await statuses(lab, later)).toHaveLength(1);
});

test('a step without a task is pinned by nothing: needs, foreach and inputs follow the edit', async () => {
  const child = (parts: string) =>
    text(`${each('command: [one, "${item}"]')}  child: {tags: [t], ${parts}}\n`);
  const { lab, worker, scan } = await running(child('needs: {each: single}, command: [c]'));
  expect(await stepRow(lab, scan, 'child')).toMatchObject({ begun: true, pins: null });
  await edit(
    lab,
    child('needs: {each: single}, foreach: {in: each.rows, pick: line}, command: [d, "${item}"]'),
  );
  await lab.plan(scan);
  await lab.run((await lab.published(scan, 'each'))[0]!, worker, { rows: { r: 'x\n' } });
  await lab.finalize();
  await lab.plan(scan);
  expect((await lab.tasks(scan, 'child')).map((task) => task.item)).toEqual(['x']);
  expect(await stepRow(lab, scan, 'child')).toMatchObject({
    pins: { foreach: { pick: 'line' } },
    revision_note: null,
  });
});

test('a step that needs another step now, before its first task, begins by that', async () => {
  const two = (parts: string) =>
    text(
      `${each('command: [one, "${item}"]')}  other: {tags: [u], command: [o]}\n  child: {tags: [t], ${parts}}\n`,
    );
  const { lab, scan } = await running(two('needs: {each: single}, command: [c]'));
  const other = await lab.worker({ name: 'w2', tags: ['u'] });
  await edit(lab, two('needs: {other: all}, command: [c]'));
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'child')).toMatchObject({ begun: false, state: 'open' });
  await lab.place();
  await lab.run((await lab.published(scan, 'other'))[0]!, other);
  await lab.plan(scan);
  expect(await statuses(lab, scan, 'child')).toEqual(['Pending']);
});

test('a revision that does not fit what is pinned leaves the step its last valid one, and the next is taken', async () => {
  const { lab, worker, scan } = await running();
  await edit(
    lab,
    text(each('command: [two, "${item.host}"]').replace('in: inputs.lines}', 'in: inputs.lines}'))
      .replace('foreach: {in: inputs.lines}', 'needs: {list: all}, foreach: {in: list.l}')
      .replace(
        'steps:\n',
        'steps:\n  list: {tags: [t], command: [l], outputs: {l: {path: l, read: jsonl}}}\n',
      ),
  );
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({
    revision: 1,
    revision_note: expect.stringMatching(/^revision 2 was not taken: .*revision 1 stays in force$/),
  });
  await lab.run((await lab.published(scan))[0]!, worker);
  await lab.plan(scan);
  await lab.place();
  const [b] = await lab.published(scan, 'each');
  expect(await argvOf(lab, b!)).toEqual(['one', 'b']);
  expect(b).toMatchObject({ definition_revision: 1 });
  await edit(lab, text(each('command: [three, "${item}"]')));
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({ revision: 3, revision_note: null });
});

test('a default of a new input is used; without a value the steps that use it stay as they were', async () => {
  const { lab, worker, scan } = await running();
  const withRate = (input: string) =>
    text(
      `${each('command: [two, "${inputs.rate}", "${item}"]')}  more: {tags: [never], command: [m, "\${inputs.rate}"]}\n`,
      `, rate: {type: number, ${input}}`,
    );
  await edit(lab, withRate('required: true'));
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'each')).toMatchObject({
    revision: 1,
    revision_note: expect.stringContaining('there is no input `rate`'),
  });
  expect(await stepRow(lab, scan, 'more')).toMatchObject({ state: 'blocked', revision: null });
  await edit(lab, withRate('default: 50'));
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'more')).toMatchObject({ state: 'open', revision: 3, revision_note: null });
  // Another default later is for new scans: what the scan has it keeps.
  await edit(lab, withRate('default: 60'));
  await lab.plan(scan);
  await lab.run((await lab.published(scan))[0]!, worker);
  await lab.place();
  expect(await argvOf(lab, (await lab.published(scan))[0]!)).toEqual(['two', '50', 'b']);
});

test('a new file of the definition goes to new placements, by its digest', async () => {
  const files = (sha256: string) => ({
    words: { kind: 'file' as const, entries: [{ path: 'w.txt', sha256 }] },
  });
  const source = first
    .replace('steps:', 'files: {words: w.txt}\nsteps:')
    .replace('[one,', '[one, "${file.words}",');
  const stored = async (sha256: string) => {
    await clone.database.execute(
      query`insert into sonar.stored_file (workspace_id, sha256, size, object_key) values ('default', ${sha256}, 1, 'k')`,
    );
    return applyDefinition(clone.database, 'default', source, files(sha256));
  };
  const lab = openLaboratory(clone, objects, { SONAR_CAPACITY_MULTIPLE: 1 });
  const worker = await lab.worker({ slots: 1 });
  await stored('a'.repeat(64));
  const { scan } = await startScan(lab.database, 'default', {
    definition: 'live',
    inputs: { lines: 'a\nb' },
    scope: { allow: ['example.com'] },
  });
  await lab.plan(scan);
  await lab.place();
  const [a] = await lab.published(scan);
  await stored('b'.repeat(64));
  await lab.plan(scan);
  await lab.run(a!, worker);
  await lab.place();
  const [b] = await lab.published(scan);
  const digest = async (attempt: typeof a) => (await dispatchOf(lab, attempt!)).inputs[0]?.digest;
  expect(await digest(a)).not.toBe(await digest(b));
  expect([a?.definition_revision, b?.definition_revision]).toEqual([1, 2]);
});

test('a paused scan takes an edit when it goes on; one that is being cancelled never', async () => {
  const { lab, scan } = await running();
  await pauseScan(lab.database, scan.scan_id, 'pause');
  await edit(lab, text(each('command: [two, "${item}"]')));
  await lab.plan(scan);
  expect(await now(lab, scan)).toMatchObject({ definition_revision: 1 });
  await pauseScan(lab.database, scan.scan_id, 'resume');
  await lab.plan(scan);
  expect(await now(lab, scan)).toMatchObject({ definition_revision: 2 });
  await cancelScan(lab.database, scan.scan_id, 'enough');
  await edit(lab, text(`${each('command: [three, "${item}"]')}  more: {tags: [t], command: [m]}\n`));
  await lab.plan(scan);
  expect(await now(lab, scan)).toMatchObject({ definition_revision: 2 });
  expect(await stepRow(lab, scan, 'more')).toBeUndefined();
});

test('an edit reopens no scan that has ended, but one that comes before the end is taken', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(first);
  await lab.plan(scan);
  await edit(
    lab,
    text(
      `${each('command: [one, "${item}"]')}  more: {tags: [never], foreach: {in: inputs.lines}, command: [m, "\${item}"]}\n`,
    ),
  );
  expect(await lab.settle(scan)).toBe('Running');
  await lab.plan(scan);
  expect(await stepRow(lab, scan, 'more')).toMatchObject({ state: 'settled' });
  expect(await lab.settle(scan)).toBe('Completed');
  await edit(lab, first.replace('[one,', '[four,'));
  const pass = await planScan(lab, scan.scan_id);
  expect(pass).toMatchObject({
    definition: undefined,
    scan: { status: 'Completed', definition_revision: 2 },
  });
});

test('a deleted definition starts no scan, and leaves its last revision in force', async () => {
  const { lab, worker, scan } = await running();
  await edit(lab, text(each('command: [two, "${item}"]')));
  expect(await deleteDefinition(lab.database, 'default', 'live')).toBe(true);
  await lab.plan(scan);
  await lab.run((await lab.published(scan))[0]!, worker);
  await lab.place();
  expect(await argvOf(lab, (await lab.published(scan))[0]!)).toEqual(['two', 'b']);
  await expect(startScan(lab.database, 'default', { definition: 'live' })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect((await edit(lab, first)).revision).toBe(3);
});

test('an item that cannot be rendered after an edit fails alone, and a step of a lost revision stops nobody', async () => {
  const { lab, worker, scan } = await running(text(each('command: [one, "x${item}"]')), {
    inputs: { lines: 'a\n-b\nc' },
  });
  const lost = await lab.scan(`sonar: 1\nname: lost\nsteps:\n  only: {tags: [t], command: [x]}\n`);
  await lab.plan(lost);
  await edit(lab, text(each('command: [two, "${item}"]')));
  await lab.plan(scan);
  await lab.run((await lab.published(scan))[0]!, worker);
  await clone.database.execute(
    query`update sonar.scan_step set revision = 9 where scan_id = ${lost.scan_id}`,
  );
  await lab.place();
  await lab.place();
  expect((await lab.tasks(scan)).map((task) => [task.status, task.failure_code])).toEqual([
    ['Completed', null],
    ['Failed', 'item_refused'],
    ['Published', null],
  ]);
  expect(await statuses(lab, lost)).toEqual(['Pending']);
});

test('passes that run at once take a revision once', async () => {
  const { lab, scan } = await running();
  await edit(lab, text(`${each('command: [two, "${item}"]')}  more: {tags: [never], command: [m]}\n`));
  const elsewhere = Array.from({ length: 6 }, () => clone.open(1));
  await Promise.all(elsewhere.map((database) => planScan({ ...lab, database }, scan.scan_id)));
  expect((await stepsOfScan(lab.database, scan.scan_id)).map((row) => [row.step, row.ordinal])).toEqual([
    ['each', 1],
    ['more', 2],
  ]);
  await lab.plan(scan);
  expect(await statuses(lab, scan, 'more')).toEqual(['Pending']);
});
