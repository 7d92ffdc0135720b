// Lists that people bring in: each once, whole or on its way, and folded like everything else.
import { defaultWorkspace } from '#sonar/contracts/ids.ts';
import { importRecords, importSpec, resumeImport } from '#sonar/flow/import-records.ts';
import { confirmFiles, placesForFiles } from '#sonar/flow/store-files.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import { put, sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { watchedDatabase } from '../fixtures/watched-database.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const lab = (settings: Partial<Settings> = {}) => openLaboratory(clone, objects, settings);

async function stored(parts: Laboratory, content: string): Promise<string> {
  const claim = { sha256: sha256(content), size: Buffer.byteLength(content) };
  const [place] = await placesForFiles(parts, defaultWorkspace, [claim]);
  if (place) {
    await put(place, Buffer.from(content));
    await confirmFiles(parts, defaultWorkspace, [{ ...claim, upload: place.upload }]);
  }
  return claim.sha256;
}
async function bring(
  parts: Laboratory,
  content: string,
  read: Parameters<typeof importSpec>[2],
): ReturnType<typeof importRecords> {
  return importRecords(parts, {
    workspaceId: defaultWorkspace,
    sha256: await stored(parts, content),
    name: 'list.txt',
    importedBy: 'somebody',
    read: await importSpec(parts.database, defaultWorkspace, read),
  });
}
const dump = async () =>
  JSON.stringify([
    await clone.database.rows(query`select * from sonar.inventory order by type, key`),
    await clone.database.rows(query`select * from sonar.source_record order by source_id, type, key`),
    await clone.database.rows(query`select * from sonar.observation order by attempt_id, row, part`),
  ]);
const keys = async () =>
  (
    await clone.database.rows<{ type: string; key: string }>(
      query`select type, key from sonar.inventory order by 1, 2`,
    )
  ).map(({ type, key }) => `${type} ${key}`);
const domains = { format: 'lines', record: 'domain' };

test('a list of lines becomes records; bad lines are counted and shown, and lose no neighbour', async () => {
  const { row, created } = await bring(lab(), 'A.example.com.\n-bad-\nb.example.com\n\n=cmd()\n', domains);
  expect(created).toBe(true);
  expect(row).toMatchObject({
    status: 'done',
    records: 2,
    bad_records: 2,
    warnings: ['domain: `name` is no domain: "-bad-"', 'domain: `name` is no domain: "=cmd()"'],
  });
  expect(await keys()).toEqual(['domain a.example.com', 'domain b.example.com']);
});

test('the same file again adds nothing, byte for byte; read in another way it is another import', async () => {
  const parts = lab();
  await bring(parts, 'a.example.com\n10.0.0.1\n', { format: 'lines', record: 'host' });
  expect(await keys()).toEqual(['address 10.0.0.1', 'domain a.example.com']);
  const before = await dump();
  expect(await bring(parts, 'a.example.com\n10.0.0.1\n', { format: 'lines', record: 'host' })).toMatchObject({
    created: false,
    row: { status: 'done', records: 2 },
  });
  expect(await dump()).toBe(before);
  expect(await bring(parts, 'a.example.com\n10.0.0.1\n', domains)).toMatchObject({
    created: true,
    row: { records: 1, bad_records: 1 },
  });
});

test('a reader with records of its own, and rows with their fields', async () => {
  const parts = lab();
  await bring(parts, '{"host":"a.example.com","ip":"10.0.0.1","port":80}\n', { format: 'naabu' });
  await bring(parts, 'host,port\n10.0.0.2,443\n', {
    format: 'csv',
    record: 'service',
    fields: { address: 'host', port: 'port' },
  });
  expect(await keys()).toEqual(
    expect.arrayContaining(['service 10.0.0.1/tcp/80', 'service 10.0.0.2/tcp/443']),
  );
});

test.each([
  [{ format: 'nothing' }, 'there is no reader "nothing"'],
  [{ format: 'nmap-xml', record: 'domain' }, 'the reader nmap-xml makes its own records'],
  [{ format: 'jsonl' }, 'has no records of its own: name the record'],
  [{ format: 'lines', record: 'login' }, 'there is no record type "login"'],
  [
    { format: 'csv', record: 'service', fields: { address: 'ip' } },
    'the record service needs the field "port"',
  ],
])('%j is refused', async (read, message) => {
  await expect(importSpec(clone.database, defaultWorkspace, read)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(message) as string,
  });
});

test('a file that is not stored is refused, one without a good record fails and says why', async () => {
  await expect(
    importRecords(lab(), {
      workspaceId: defaultWorkspace,
      sha256: 'a'.repeat(64),
      name: 'x',
      importedBy: 'x',
      read: { reader: 'lines', record: 'domain', fields: { name: 'line' } },
    }),
  ).rejects.toMatchObject({ code: 'invalid' });
  expect((await bring(lab(), '-x-\n', domains)).row).toMatchObject({
    status: 'failed',
    error: 'none of 1 records could be read; the first: domain: `name` is no domain: "-x-"',
  });
});

test('an import that dies between batches goes on where it was, and ends in the same bytes', async () => {
  const parts = lab();
  const list = Array.from({ length: 5_000 }, (_, n) => `h${n}.example.com`).join('\n');
  const { row } = await bring(parts, list, domains);
  expect(row).toMatchObject({ status: 'done', records: 5_000, events: 5_000 });
  const whole = await keys();
  await clone.empty();
  const dying = faultyDatabase(
    clone.database,
    (name, time) => (name === 'import.advance' && time === 3) || name === 'import.release',
  );
  await expect(bring(parts.with({ database: dying }), list, domains)).rejects.toThrow('injected fault');
  expect(await keys()).toHaveLength(4_000);
  // Its claim holds: nobody else begins.
  expect((await bring(parts, list, domains)).row).toMatchObject({ status: 'due', records: 4_000 });
  expect(await resumeImport(parts)).toBe(false);
  await clone.database.execute(
    query`update sonar.inventory_import set claim_expires_at = clock_timestamp() - interval '1 day'`,
  );
  expect(await resumeImport(parts)).toBe(true);
  expect((await bring(parts, list, domains)).row).toMatchObject({
    status: 'done',
    records: 5_000,
    bad_records: 0,
  });
  expect(await keys()).toEqual(whole);
  expect(await clone.database.rows(query`select count(*) as n from sonar.observation`)).toEqual([
    { n: 5_000 },
  ]);
});

const dieOnce = async (parts: Laboratory, content: string) => {
  await expect(bring(parts, content, domains)).rejects.toThrow('injected fault');
  await clone.database.execute(
    query`update sonar.inventory_import set claim_expires_at = clock_timestamp() - interval '1 day'`,
  );
};
const deadly = (parts: Laboratory, from = 1) =>
  parts.with({
    database: faultyDatabase(
      clone.database,
      (name, time) => (name === 'import.advance' && time >= from) || name === 'import.release',
    ),
  });

test('a file that kills its readers is given up', async () => {
  const parts = lab();
  for (let time = 1; time <= 5; time += 1) await dieOnce(deadly(parts), 'a.example.com');
  expect((await bring(parts, 'a.example.com', domains)).row).toMatchObject({
    status: 'failed',
    error: 'every process that read it has died or lost its claim',
  });
});

test('an import that failed is tried anew when somebody asks for it again, and counts from nothing', async () => {
  const parts = lab();
  const list = ['-bad-', ...Array.from({ length: 3_000 }, (_, n) => `h${n}.example.com`)].join('\n');
  await dieOnce(deadly(parts, 2), list);
  for (let time = 1; time <= 5; time += 1) await dieOnce(deadly(parts), list);
  expect((await bring(parts, list, domains)).row).toMatchObject({
    status: 'failed',
    records: 2_000,
    bad_records: 1,
  });
  // Nobody but somebody who asks: left alone it stays as it is.
  expect(await resumeImport(parts)).toBe(false);
  expect(await bring(parts, list, domains)).toMatchObject({
    created: true,
    row: { status: 'done', error: null, records: 3_000, bad_records: 1, warnings: [expect.any(String)] },
  });
  expect(await keys()).toHaveLength(3_000);
  expect(await bring(parts, list, domains)).toMatchObject({ created: false, row: { status: 'done' } });
});

test('an outage of the object store ends no import, however often it is asked for meanwhile', async () => {
  const parts = lab();
  const content = 'a.example.com\n';
  const away = parts.with({
    objects: {
      ...objects,
      read: () => Promise.reject(new SonarError('unreachable', 'the store is away')),
    },
  });
  await stored(parts, content);
  for (let time = 0; time < 6; time += 1)
    await expect(bring(away, content, domains)).rejects.toThrow('the store is away');
  expect(await clone.database.rows(query`select status, attempts from sonar.inventory_import`)).toEqual([
    { status: 'due', attempts: 0 },
  ]);
  expect((await bring(parts, content, domains)).row).toMatchObject({ status: 'done', records: 1 });
});

test('what an import writes at once is bounded in all its bytes', async () => {
  const line = (n: number) =>
    JSON.stringify({
      host: `h${n}.example.com`,
      port: 443,
      fingerprint_hash: { sha256: `${n}`.padStart(64, 'a') },
      subject_an: Array.from({ length: 256 }, (_, name) => `${'n'.repeat(240)}${name}.example.com`),
    });
  const sizes: number[] = [];
  const measured = watchedDatabase(clone.database, async ({ name, values }) => {
    if (name === 'inventory.insert_observations') sizes.push(Buffer.byteLength(String(values[0])));
  });
  const content = Array.from({ length: 80 }, (_, n) => line(n)).join('\n');
  await bring(lab().with({ database: measured }), content, { format: 'tlsx' });
  expect(Math.max(...sizes)).toBeLessThan(4 * 1024 * 1024 + 2 * line(0).length);
  expect(sizes).toHaveLength(2);
});

test('what an import and a scan saw of one record is one record, whichever came first', async () => {
  const parts = lab();
  await bring(parts, 'x.example.com\n', domains);
  const [first] = await clone.database.rows<{ first_seen_at: string; last_seen_at: string }>(
    query`select first_seen_at, last_seen_at from sonar.inventory`,
  );
  await bring(parts, 'x.example.com\ny.example.com\n', domains);
  const [again] = await clone.database.rows<{ first_seen_at: string; last_seen_at: string }>(
    query`select first_seen_at, last_seen_at from sonar.inventory where key = 'x.example.com'`,
  );
  expect(again?.first_seen_at).toBe(first?.first_seen_at);
  expect(Date.parse(again?.last_seen_at ?? '')).toBeGreaterThan(Date.parse(first?.last_seen_at ?? ''));
});
