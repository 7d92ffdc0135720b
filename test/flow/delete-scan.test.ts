// A deleted scan is gone: no row, no object, nothing of the inventory that only it had seen; and nothing of anybody else.
import { defaultWorkspace, type ScanId } from '#sonar/contracts/ids.ts';
import { scanObjects, uploadedObjectKey } from '#sonar/contracts/names.ts';
import { type DeleteParts, deleteScan, workOffDeletion } from '#sonar/flow/delete-scan.ts';
import { grantUploads } from '#sonar/flow/grant-files.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import { findScan, listScans, type ScanRow } from '#sonar/stores/scans.ts';
import { insertStoredFile } from '#sonar/stores/stored-files.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { identity, type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import type { LiveWorker } from '../fixtures/live-worker.ts';
import { objectsUnder, put, sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { scriptedTemporal } from '../fixtures/scripted-temporal.ts';
import { page } from '../fixtures/unread-results.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const { signal } = new AbortController();

/** A bit of everything that leaves rows: staged batches, unique items, made inputs, pinned sources, a file. */
const everything = `
sonar: 1
name: everything
inputs: {lines: {type: lines, default: "a\\nb\\na"}, list: {type: file, required: true}}
steps:
  each:
    tags: [t]
    foreach: {in: inputs.lines, unique: true}
    command: [x]
    outputs: {found: {path: found.jsonl, read: {format: jsonl, record: endpoint, fields: {url: url, title: title}}}}
  some: {tags: [t], foreach: {in: inputs.lines, batch: 2}, command: [x, "\${batch}"]}
  child: {tags: [t], needs: {each: single}, inputs: {urls: {from: each.found, as: lines, pick: url}}, command: [x, "\${in.urls}"]}
  report: {tags: [t], needs: {each: all}, command: [x]}
`;

async function storeFile(content: string): Promise<{ hash: string; key: string }> {
  const hash = sha256(content);
  const key = uploadedObjectKey(defaultWorkspace, hash, newId());
  await objects.write(key, Buffer.from(content), content.length);
  await insertStoredFile(clone.database, defaultWorkspace, {
    sha256: hash,
    size: content.length,
    objectKey: key,
  });
  return { hash, key };
}

/** Run to its end; each line found two endpoints, one of them under the same name in every scan. */
async function endedScan(lab: Laboratory, worker: LiveWorker, hash: string, name: string): Promise<ScanRow> {
  const scan = await lab.scan(everything, { name, inputs: { list: { sha256: hash } } });
  for (let round = 0; round < 4; round += 1) {
    await lab.plan(scan);
    await lab.place();
    // The last message is never told, so its event still waits.
    if (round === 0) await lab.publish();
    for (const attempt of await lab.published(scan))
      await lab.run(
        attempt,
        worker,
        attempt.step === 'each' ? { found: { 'found.jsonl': `${page('all', name)}\n${page(name)}` } } : {},
      );
    await lab.finalize();
  }
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Completed');
  await clone.database.execute(query`
    insert into sonar.missing_program (scan_id, step, incarnation_id, definition_revision, workspace_id, message)
    values (${scan.scan_id}, 'each', ${worker.incarnationId}, 1, ${defaultWorkspace}, 'not on its PATH')`);
  return scan;
}

const partsOf = (lab: Laboratory, changes: Partial<DeleteParts> = {}): DeleteParts => ({
  ...lab,
  settings: { SONAR_URL_LIFE_MS: 1 },
  temporal: scriptedTemporal(),
  ...changes,
});

async function workOff(parts: DeleteParts): Promise<void> {
  for (let round = 0; round < 200; round += 1) if (!(await workOffDeletion(parts, signal))) return;
  throw new Error('the deletion has no end');
}

const inventory = () =>
  clone.database.rows(query`select to_jsonb(i)::text as row from sonar.inventory i order by type, key`);

const tables = async (): Promise<string[]> =>
  (
    await clone.database.rows<{ name: string }>(query`
      select table_name as name from information_schema.tables where table_schema = 'sonar' and table_type = 'BASE TABLE' order by 1`)
  ).map((row) => row.name);

/** Every identity that belongs to the scan, by what the catalog calls an id. */
async function idsOf(scanId: ScanId): Promise<string[]> {
  const rows = await clone.database.rows<{ id: string }>(query`
    select ${scanId}::text as id
    union select task_id::text from sonar.task where scan_id = ${scanId}
    union select attempt_id::text from sonar.attempt where scan_id = ${scanId}
    union select expansion_id::text from sonar.expansion where scan_id = ${scanId}
    union select finalization_id::text from sonar.finalization where scan_id = ${scanId}
    union select event_id::text from sonar.outbox_events e join sonar.attempt a using (attempt_id) where a.scan_id = ${scanId}`);
  return rows.map((row) => row.id);
}

/** Tables with a row in which any of the ids stands, in whatever column. */
async function tablesWith(ids: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const table of await tables()) {
    const { text, values } = query`
      select count(*)::integer as rows from sonar.TABLE t, unnest(${ids}::text[]) as id where strpos(to_jsonb(t)::text, id) > 0`;
    const [row] = await clone.database.rows<{ rows: number }>({
      name: '',
      text: text.replace('TABLE', table),
      values,
    });
    if ((row?.rows ?? 0) > 0) found.push(table);
  }
  return found;
}

const tablesOfScans = async (): Promise<string[]> =>
  (
    await clone.database.rows<{ name: string }>(query`
      select distinct table_name as name from information_schema.columns
      where table_schema = 'sonar' and column_name in ('scan_id', 'task_id', 'attempt_id', 'expansion_id', 'event_id', 'source_id') order by 1`)
  ).map((row) => row.name);

test('a deleted scan leaves no row in any table and no object, and the inventory is what it would be without it', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const { hash } = await storeFile('shared\n');
  const other = await endedScan(lab, worker, hash, 'other');
  const untouched = await inventory();
  const scan = await endedScan(lab, worker, hash, 'gone');
  expect(await inventory()).not.toEqual(untouched);
  // What a crash in the midst of planning and of an upload leaves.
  await clone.database.execute(query`
    insert into sonar.expansion_row (expansion_id, ordinal, workspace_id, item)
    select expansion_id, 0, 'default', '1' from sonar.expansion where scan_id = ${scan.scan_id} limit 1`);
  await clone.database.execute(query`
    insert into sonar.task_count_delta (scan_id, workspace_id, step, status, no_work, tasks)
    values (${scan.scan_id}, 'default', 'each', 'Completed', false, 0)`);
  await objects.write(
    `${scanObjects(defaultWorkspace, scan.scan_id)}${newId()}/never-accepted`,
    Buffer.from('x'),
    1,
  );
  const ids = await idsOf(scan.scan_id);
  // Of every table that can hold something of a scan there is a row, or this test proves nothing about it.
  const found = await tablesWith(ids);
  expect((await tablesOfScans()).filter((table) => !found.includes(table))).toEqual([]);

  const ofOther = await tablesWith(await idsOf(other.scan_id));

  await deleteScan(clone.database, scan.scan_id);
  const temporal = scriptedTemporal();
  await workOff(partsOf(lab, { temporal }));
  expect(await tablesWith(ids)).toEqual([]);
  expect(await objectsUnder(scanObjects(defaultWorkspace, scan.scan_id))).toEqual([]);
  expect(temporal.calls).toEqual([`forgetScan ${scan.scan_id}`]);
  expect(await inventory()).toEqual(untouched);
  expect(await tablesWith(await idsOf(other.scan_id))).toEqual(ofOther);
  expect((await objectsUnder(scanObjects(defaultWorkspace, other.scan_id))).length).toBeGreaterThan(0);
});

test('killed before every statement and every object once, a deletion goes on to the same end', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const { hash, key } = await storeFile('only here\n');
  const scan = await endedScan(lab, worker, hash, 'gone');
  const ids = await idsOf(scan.scan_id);
  await deleteScan(clone.database, scan.scan_id);
  const died = new Set<string>();
  const once = (name: string): boolean => {
    if (died.has(name)) return false;
    died.add(name);
    return true;
  };
  const fault = () => Promise.reject(new SonarError('unreachable', 'away'));
  const dying = partsOf(lab, {
    database: faultyDatabase(clone.database, (name) => once(name)),
    objects: {
      ...objects,
      remove: (keys) => (once('remove') ? fault() : objects.remove(keys)),
      removeUnder: (prefix) => (once('removeUnder') ? fault() : objects.removeUnder(prefix)),
    },
    temporal: { forgetScan: () => (once('forgetScan') ? fault() : Promise.resolve()) },
  });
  for (let life = 0; life < 200; life += 1)
    if (!(await workOffDeletion(dying, signal).catch(() => true))) break;
  expect([...died].filter((name) => name.startsWith('deletion.')).length).toBeGreaterThan(20);
  expect(died).toContain('removeUnder');
  expect(await tablesWith(ids)).toEqual([]);
  expect(await objectsUnder(scanObjects(defaultWorkspace, scan.scan_id))).toEqual([]);
  expect(await objectsUnder(key)).toEqual([]);
  expect(await inventory()).toEqual([]);
});

test('an uploaded file stays while another scan or a definition refers to it, and goes with the last', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const { hash, key } = await storeFile('for two\n');
  const first = await endedScan(lab, worker, hash, 'first');
  const second = await endedScan(lab, worker, hash, 'second');
  for (const [scan, left] of [
    [first, 1],
    [second, 0],
  ] as const) {
    await deleteScan(clone.database, scan.scan_id);
    await workOff(partsOf(lab));
    expect(await clone.database.rows(query`select sha256 from sonar.stored_file`)).toHaveLength(left);
    expect(await objectsUnder(key)).toHaveLength(left);
  }
});

test('from its mark on a scan is nobody’s: not found, not listed, its key free; its late callbacks are superseded', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const { hash } = await storeFile('x\n');
  const request = { clientKey: 'nightly', inputs: { list: { sha256: hash } } };
  const scan = await lab.scan(everything, request);
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  await lab.start(attempt!, worker);
  const result = await lab.result(attempt!, worker, { found: { 'found.jsonl': page('a') } });
  await expect(deleteScan(clone.database, scan.scan_id)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(`sonar scan cancel ${scan.scan_id}`),
  });
  await clone.database.execute(query`
    update sonar.task set status = 'Cancelled', attempt_id = null, finished_at = now() where scan_id = ${scan.scan_id}`);
  await clone.database.execute(query`
    update sonar.scan set status = 'Cancelled', finished_at = now() where scan_id = ${scan.scan_id}`);
  await deleteScan(clone.database, scan.scan_id);
  expect(await findScan(clone.database, scan.scan_id)).toBeUndefined();
  expect(await listScans(clone.database, defaultWorkspace, { status: null, after: null, limit: 9 })).toEqual(
    [],
  );
  await expect(retryTasks(lab, scan.scan_id, null)).rejects.toMatchObject({ code: 'not_found' });
  await expect(deleteScan(clone.database, scan.scan_id)).rejects.toMatchObject({ code: 'not_found' });
  expect(await lab.accept(attempt!, result)).toBe('superseded');
  const again = await lab.scan(everything, request);
  expect(again.scan_id).not.toBe(scan.scan_id);
  await workOff(partsOf(lab));
  expect(await lab.accept(attempt!, result)).toBe('superseded');
  expect(await findScan(clone.database, again.scan_id)).toMatchObject({ status: 'Running' });
});

test('the row stays until no upload that was granted before can arrive, and what arrived is removed with it', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const { hash } = await storeFile('x\n');
  const scan = await endedScan(lab, worker, hash, 'gone');
  const [task] = await lab.tasks(scan, 'each');
  const attempt = { ...scan, attempt_id: task!.accepted_attempt_id! };
  const late = Buffer.from('late');
  const { files } = await grantUploads(
    lab,
    attempt as never,
    { ...identity(attempt as never, worker), files: [{ size: 4, sha256: sha256(late) }] },
    100,
  );
  await deleteScan(clone.database, scan.scan_id);
  await workOff(partsOf(lab, { settings: { SONAR_URL_LIFE_MS: 60_000 } }));
  expect(await clone.database.rows(query`select scan_id from sonar.scan`)).toHaveLength(1);
  expect(await clone.database.rows(query`select task_id from sonar.task`)).toEqual([]);
  await put(files[0]!, late);
  await workOff(partsOf(lab));
  expect(await clone.database.rows(query`select scan_id from sonar.scan`)).toEqual([]);
  expect(await objectsUnder(scanObjects(defaultWorkspace, scan.scan_id))).toEqual([]);
});
