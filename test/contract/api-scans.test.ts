// What people and backends ask: definitions, scans, tasks, inventory, workers.
import { type Problem, problemSchema } from '#sonar/contracts/scan-api.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachLine, oneStep } from '../fixtures/definition-texts.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { type Answer, type ServedApi, serveApi } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const scope = { allow: ['example.com'] };

/** The answer is a problem of the published shape with that status and code. */
function expectProblem(answer: Answer, status: number, code: string): Problem {
  expect(answer).toMatchObject({
    status,
    type: expect.stringContaining('application/problem+json'),
    body: { status, code },
  });
  return problemSchema.strict().parse(answer.body);
}

const startScan = async (api: ServedApi, body: object = {}) => {
  await api.ask('POST', '/v1/definitions', { body: { source: oneStep } });
  return api.ask('POST', '/v1/scans', { body: { definition: 'one-step', scope, ...body } });
};

test('a definition is validated with all problems at once, and applied as revisions', async () => {
  await using api = await serveApi(clone, objects);
  const source = oneStep.replace('tags: [t]', 'tagz: [t]').replace('record: endpoint', 'record: endpiont');
  const checked = await api.ask('POST', '/v1/definitions/validate', { body: { source } });
  expect(checked).toMatchObject({ status: 200, body: { valid: false, name: null } });
  expect(checked.body.problems.length).toBeGreaterThan(1);
  const refused = await api.ask('POST', '/v1/definitions', { body: { source } });
  expect(expectProblem(refused, 422, 'invalid').problems).toHaveLength(checked.body.problems.length);
  for (const revision of [1, 1])
    expect(await api.ask('POST', '/v1/definitions', { body: { source: oneStep } })).toMatchObject({
      status: 200,
      body: { name: 'one-step', revision, steps: ['only'] },
    });
  expect(await api.ask('POST', '/v1/definitions/validate', { body: { source: oneStep } })).toMatchObject({
    body: { valid: true, name: 'one-step', problems: [] },
  });
});

test('a start is 201 once and 200 with the same scan for the same key; another body is a conflict', async () => {
  await using api = await serveApi(clone, objects);
  const first = await startScan(api, { clientKey: 'k' });
  expect(first).toMatchObject({
    status: 201,
    body: { status: 'Running', definition: 'one-step', cancelRequested: false },
  });
  const again = await startScan(api, { clientKey: 'k' });
  expect(again).toMatchObject({ status: 200, body: { id: first.body.id } });
  expectProblem(await startScan(api, { clientKey: 'k', name: 'other' }), 409, 'conflict');
  expect(api.temporal.calls).toEqual([`startScan ${first.body.id}`, `startScan ${first.body.id}`]);
});

test('a scan is started even while Temporal is away: maintenance starts its workflow later', async () => {
  await using api = await serveApi(clone, objects, { startScan: () => Promise.reject(new Error('away')) });
  expect(await startScan(api)).toMatchObject({ status: 201 });
});

test('a scan without scope is refused with the way out, and an unknown definition is not found', async () => {
  await using api = await serveApi(clone, objects);
  const problem = expectProblem(await startScan(api, { scope: undefined }), 422, 'invalid');
  expect(problem.problems).toEqual([
    expect.objectContaining({ path: 'scope', hint: expect.stringContaining('--allow') }),
  ]);
  expectProblem(await startScan(api, { definition: 'nothing' }), 404, 'not_found');
});

test('latest is the scan that was started last, here and as a filter; without one it is not found', async () => {
  await using api = await serveApi(clone, objects);
  expectProblem(await api.ask('GET', '/v1/scans/latest'), 404, 'not_found');
  await startScan(api);
  const newest = await startScan(api);
  // Two ids of one millisecond have no order: the newest is the greatest.
  const { body: list } = await api.ask('GET', '/v1/scans');
  expect(list.items.map((scan: { id: string }) => scan.id)).toContain(newest.body.id);
  expect(await api.ask('GET', '/v1/scans/latest')).toMatchObject({
    status: 200,
    body: { id: list.items[0].id },
  });
  expect(await api.ask('GET', '/v1/tasks?scan=latest')).toMatchObject({
    status: 200,
    body: { items: [], next: null },
  });
  expect(await api.ask('GET', '/v1/inventory?scan=latest')).toMatchObject({
    status: 200,
    body: { items: [] },
  });
});

test('a cancel is committed, wakes the scan, and is the same when it is asked for again', async () => {
  await using api = await serveApi(clone, objects);
  const { body } = await startScan(api);
  const cancelled = {
    status: 200,
    body: { status: 'Cancelling', cancelRequested: true, reason: 'cancelled by token "a operator"' },
  };
  for (const _ of [1, 2])
    expect(await api.ask('POST', `/v1/scans/${body.id}/cancel`, { as: 'operator' })).toMatchObject(cancelled);
  expect(api.woken).toEqual([body.id, body.id]);
});

test('a scan shows its steps with counts, its workflow and what it found', async () => {
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: oneStep });
  await using api = await serveApi(clone, objects);
  await lab.run(attempt, worker, {
    found: { 'found.jsonl': '{"url":"http://a.example.com/","title":"A"}\nno json' },
  });
  expect((await api.ask('GET', `/v1/scans/${scan.scan_id}`)).body).toMatchObject({ unfinalized: 1 });
  await lab.finalize();
  expect((await api.ask('GET', `/v1/scans/${scan.scan_id}`)).body).toMatchObject({
    temporalWorkflowId: `scan/${scan.scan_id}`,
    unfinalized: 0,
    poisoned: 0,
    records: { endpoint: 1 },
    steps: [{ step: 'only', tags: ['t'], counts: { completed: 1, pending: 0, failed: 0 }, refused: 0 }],
  });
  expect((await api.ask('GET', `/v1/tasks?scan=${scan.scan_id}`)).body.items).toMatchObject([
    {
      status: 'Completed',
      worker: 'w1',
      records: 1,
      badRecords: 1,
      warnings: ['found.jsonl: the line is no JSON: no json'],
    },
  ]);
  expect((await api.ask('GET', '/v1/inventory?type=endpoint')).body.items).toMatchObject([
    { key: 'http://a.example.com/', fields: { title: 'A' }, partial: false },
  ]);
  expect((await api.ask('GET', '/v1/inventory?type=service')).body.items).toEqual([]);
  expect((await api.ask('GET', '/v1/workers')).body).toMatchObject({
    items: [{ name: 'w1', state: 'alive', slots: 100 }],
    hold: null,
  });
});

test('the workers say that absence is not judged at present, and until when', async () => {
  await using api = await serveApi(clone, objects);
  const until = '2126-01-01T00:00:00.000Z';
  await clone.database.execute(
    query`update sonar.recovery set held_until = ${until}, held_note = '6 of 10 workers fell silent at once'`,
  );
  expect((await api.ask('GET', '/v1/workers')).body.hold).toEqual({
    until,
    note: '6 of 10 workers fell silent at once',
  });
});

async function pagesOf(api: ServedApi, url: string): Promise<{ sizes: number[]; items: unknown[] }> {
  const sizes: number[] = [];
  const items: unknown[] = [];
  for (let after = ''; ; ) {
    const { status, body } = await api.ask('GET', `${url}limit=2${after}`);
    expect(status).toBe(200);
    sizes.push(body.items.length);
    items.push(...body.items);
    if (body.next === null) return { sizes, items };
    after = `&after=${encodeURIComponent(body.next)}`;
  }
}

test('every list comes in pages that together are the whole, each item once', async () => {
  const { lab, worker, scan } = await dispatchedScan(clone, objects, { lines: 5 });
  await using api = await serveApi(clone, objects);
  for (let n = 0; n < 4; n += 1) {
    await lab.worker({ name: `other-${n}` });
    await lab.scan(eachLine.replace('each-line', `name-${n}`));
  }
  const urls = Array.from({ length: 4 }, (_, n) => ({
    url: `http://a.example.com/${'long'.repeat(115)}${n}`,
  }));
  const found = await lab.scan(oneStep);
  await lab.plan(found);
  await lab.place();
  const [attempt] = await lab.published(found);
  await lab.run(attempt!, worker, {
    found: {
      'found.jsonl': [...urls, { url: 'http://b.example.com/' }].map((url) => JSON.stringify(url)).join('\n'),
    },
  });
  await lab.finalize();
  const lists = [
    [`/v1/tasks?scan=${scan.scan_id}&`, [2, 2, 1]],
    ['/v1/scans?', [2, 2, 2]],
    ['/v1/definitions?', [2, 2, 2]],
    ['/v1/workers?', [2, 2, 1]],
    ['/v1/inventory?', [2, 2, 1]],
  ] as const;
  for (const [url, sizes] of lists) {
    const pages = await pagesOf(api, url);
    expect([url, pages.sizes]).toEqual([url, sizes]);
    expect(new Set(pages.items.map((item) => JSON.stringify(item))).size).toBe(pages.items.length);
  }
});

test.each(['scans', 'definitions', 'workers', 'inventory'])(
  'a cursor of /v1/%s that the api did not give is refused',
  async (list) => {
    await using api = await serveApi(clone, objects);
    const cursor = Buffer.from('nul\0 here').toString('base64url');
    for (const after of [cursor, ...(list === 'scans' || list === 'inventory' ? ['bm90LW9uZQ'] : [])])
      expectProblem(await api.ask('GET', `/v1/${list}?after=${after}`), 422, 'invalid');
    expectProblem(await api.ask('GET', `/v1/${list}?after=${'x'.repeat(1_025)}`), 400, 'invalid_request');
  },
);

test.each([
  ['an unknown field', { definition: 'one-step', scope, scop: {} }, 'body'],
  ['a wrong type', { definition: 7, scope }, 'body.definition'],
  ['a missing field', { scope }, 'body.definition'],
])('%s in a body is named', async (_what, body, path) => {
  await using api = await serveApi(clone, objects);
  const problem = expectProblem(await api.ask('POST', '/v1/scans', { body }), 400, 'invalid_request');
  expect(problem.problems?.[0]?.path).toBe(path);
});

test.each(['limit=0', 'limit=1001', 'limit=many', 'status=Done'])(
  'the query %s is refused',
  async (filter) => {
    await using api = await serveApi(clone, objects);
    expectProblem(await api.ask('GET', `/v1/scans?${filter}`), 400, 'invalid_request');
  },
);

const hostile = ['nul \0 here', 'half \ud800 pair'];
const hostileBodies: [what: string, url: string, bodyOf: (text: string) => object][] = [
  ['the name of a scan', '/v1/scans', (text) => ({ definition: 'one-step', scope, name: text })],
  ['a client key', '/v1/scans', (text) => ({ definition: 'one-step', scope, clientKey: text })],
  ['the name of a definition', '/v1/scans', (text) => ({ definition: text, scope })],
  ['an input', '/v1/scans', (text) => ({ definition: 'one-step', scope, inputs: { hosts: ['ok', text] } })],
  [
    'the name of an input',
    '/v1/scans',
    (text) => ({ definition: 'one-step', scope, inputs: { [text]: '' } }),
  ],
  ['a scope', '/v1/scans', (text) => ({ definition: 'one-step', scope: { allow: [text] } })],
  ['a definition', '/v1/definitions', (text) => ({ source: `${oneStep}\n# ${text}` })],
  ['a definition to validate', '/v1/definitions/validate', (text) => ({ source: text })],
  ['the name of a token', '/v1/tokens', (text) => ({ name: text, role: 'viewer' })],
];

test.each(hostileBodies)(
  'a NUL or half a surrogate pair in %s is a clear 400',
  async (_what, url, bodyOf) => {
    await using api = await serveApi(clone, objects);
    await startScan(api);
    for (const text of hostile)
      expect(
        expectProblem(await api.ask('POST', url, { body: bodyOf(text) }), 400, 'invalid_request').detail,
      ).toMatch(/^(body\.|a name in body).* holds a NUL or half a surrogate pair$/);
  },
);

test('a NUL in a query or a path is a clear 4xx', async () => {
  await using api = await serveApi(clone, objects);
  await startScan(api);
  for (const url of ['/v1/tasks?scan=latest&step=a%00', '/v1/scans?after=%00', '/v1/tasks?scan=%00'])
    expectProblem(await api.ask('GET', url), 400, 'invalid_request');
  expectProblem(await api.ask('GET', '/v1/scans/%00'), 404, 'not_found');
});

test.each([
  ['that is not UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400],
  ['that is no JSON', Buffer.from('{"definition":'), 400],
  ['over 32 MiB', Buffer.alloc(32 * 1024 * 1024 + 1, 0x20), 413],
])('a body %s is refused as a problem', async (_what, payload, status) => {
  await using api = await serveApi(clone, objects);
  const headers = { authorization: `Bearer ${api.tokens.admin}` };
  expectProblem(
    await api.request({ method: 'POST', url: '/v1/scans', headers, payload }),
    status,
    'invalid_request',
  );
});

test('a body that is not JSON by its type, and an unknown route, are problems too', async () => {
  await using api = await serveApi(clone, objects);
  const headers = { authorization: `Bearer ${api.tokens.admin}`, 'content-type': 'application/xml' };
  expectProblem(
    await api.request({ method: 'POST', url: '/v1/scans', headers, payload: '<scan/>' }),
    415,
    'invalid_request',
  );
  expectProblem(await api.ask('GET', '/v1/nothing'), 404, 'not_found');
  expectProblem(await api.ask('GET', `/v1/scans/${newId()}`), 404, 'not_found');
});

test('a fault of ours is told as such, and nothing of it is told', async () => {
  await using api = await serveApi(clone, objects);
  await clone.database.script('alter table sonar.scan rename to hidden');
  try {
    const problem = expectProblem(await api.ask('GET', '/v1/scans'), 500, 'internal');
    expect(problem.detail).not.toContain('sonar.scan');
  } finally {
    await clone.database.script('alter table sonar.hidden rename to scan');
  }
});
