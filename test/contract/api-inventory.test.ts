// The inventory over HTTP: filters, comparison, imports, and what is told of a scan that is not whole.
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { put, sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { serveApi } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

test('records are filtered, a scan that runs and one with poison say so, and cursors go on', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await using api = await serveApi(clone, objects);
  const rows = ['a', 'b', 'c'].map((name) => `{"url":"http://${name}.example.com/","title":"${name}"}`);
  await lab.run(attempt, worker, { found: { 'found.jsonl': rows.join('\n') } });
  expect((await api.ask('GET', '/v1/inventory?scan=latest')).body.warnings).toEqual([
    `scan ${scan.scan_id} is Running: there may be more to come`,
    `1 result(s) of scan ${scan.scan_id} are not read yet`,
  ]);
  await lab.finalize();
  const list = async (words: string) => {
    const { status, body } = await api.ask('GET', `/v1/inventory?${words}`);
    return status === 200
      ? body.items.map((item: { fields: { title: string } }) => item.fields.title)
      : status;
  };
  expect(await list('field=title%3Db')).toEqual(['b']);
  expect(await list('field=title%3Db&field=title%3Dc')).toEqual([]);
  expect(await list('contains=C.EXAMPLE&partial=false')).toEqual(['c']);
  expect(await list('seenSince=2030-01-01T00:00:00Z')).toEqual([]);
  expect(await list('definition=nothing')).toEqual([]);
  for (const bad of ['field=title', 'seenSince=yesterday', 'partial=maybe', 'type=No%20Type', 'after=zz'])
    expect([bad, await list(bad)]).toEqual([bad, expect.any(Number)]);
  const { body: first } = await api.ask('GET', '/v1/inventory?limit=2');
  expect((await api.ask('GET', `/v1/inventory?limit=2&after=${first.next}`)).body).toMatchObject({
    items: [{ fields: { title: 'c' } }],
    next: null,
  });
  await clone.database.execute(query`update sonar.finalization set status = 'poisoned'`);
  expect((await api.ask('GET', '/v1/inventory?scan=latest')).body.warnings).toContain(
    `1 result(s) of scan ${scan.scan_id} are poisoned: what they hold is missing here`,
  );
});

test('a comparison names its scans, and asks for them in one way', async () => {
  const { scan } = await dispatchedScan(clone, objects, { source: oneStep });
  await using api = await serveApi(clone, objects);
  const { body } = await api.ask('GET', `/v1/inventory/diff?from=${scan.scan_id}&to=latest`);
  expect(body).toMatchObject({
    from: { id: scan.scan_id, status: 'Running' },
    to: { id: scan.scan_id },
    items: [],
    next: null,
    unjudged: [{ step: 'only', reason: 'in the later scan `only` has not come to its end' }],
  });
  expect((await api.ask('GET', '/v1/inventory/diff?from=latest')).status).toBe(422);
  expect((await api.ask('GET', '/v1/inventory/diff?definition=nothing')).body).toMatchObject({
    status: 404,
    detail: expect.stringContaining('fewer than two scans that ended') as string,
  });
});

test('an import is done once, by those who may, and record types are told', async () => {
  await using api = await serveApi(clone, objects);
  const text = 'a.example.com\n-bad-\n';
  const claim = { sha256: sha256(text), size: text.length };
  const { body: places } = await api.ask('POST', '/v1/files', { body: { files: [claim] } });
  await put(places.files[0], Buffer.from(text));
  await api.ask('POST', '/v1/files/confirm', {
    body: { files: [{ ...claim, upload: places.files[0].upload }] },
  });
  const body = { sha256: claim.sha256, name: 'list.txt', read: { format: 'lines', record: 'domain' } };
  const told = { status: 'done', records: 1, badRecords: 1, importedBy: 'a operator', name: 'list.txt' };
  for (const created of [true, false])
    expect(await api.ask('POST', '/v1/inventory/imports', { as: 'operator', body })).toMatchObject({
      status: 200,
      body: { ...told, created },
    });
  expect((await api.ask('POST', '/v1/inventory/imports', { as: 'viewer', body })).status).toBe(403);
  expect(
    (await api.ask('POST', '/v1/inventory/imports', { body: { ...body, read: { format: 'x' } } })).status,
  ).toBe(422);
  expect((await api.ask('GET', '/v1/inventory')).body.items).toMatchObject([{ key: 'a.example.com' }]);
  expect((await api.ask('GET', '/v1/inventory/types')).body.items).toContainEqual({
    name: 'dns',
    key: ['name', 'type', 'value'],
    declaredBy: null,
  });
});
