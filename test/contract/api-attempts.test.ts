// What became of tasks and scans, as people ask for it: attempts, streams, files, events; and a scan's deletion.
import { attemptListSchema, scanEventListSchema, taskLogsSchema } from '#sonar/contracts/task-api.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { type ServedApi, serveApi } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const retried = oneStep.replace('command:', 'retry: {max: 1, backoff: 1ms}\n    command:');

/** Failed once, then completed with a file that no reader understands: poisoned. */
async function twoAttempts() {
  const settings = { SONAR_FINALIZATION_ATTEMPTS: 1 };
  const { lab, worker, scan, attempt } = await dispatchedScan(clone, objects, { source: retried, settings });
  const said = (text: string) => ({
    head: Buffer.from(text).toString('base64'),
    size: text.length + 5,
    sha256: sha256(text),
    truncated: true,
  });
  await lab.run(
    attempt,
    worker,
    {},
    {
      outcome: 'failed',
      exitCode: 3,
      failure: { code: 'command_failed', message: 'exited with 3' },
      stderr: said('no route\u0000'),
    },
  );
  await clone.database.execute(query`update sonar.task set not_before = null`);
  await lab.plan(scan);
  await lab.place();
  const [second] = await lab.published(scan);
  await lab.run(second!, worker, { found: { 'found.jsonl': 'no json' } });
  await lab.finalize();
  await lab.plan(scan);
  await lab.settle(scan);
  // A page of events ends two seconds ago.
  const age = clone.database;
  await age.execute(
    query`update sonar.scan set created_at = created_at - interval '1 minute', finished_at = finished_at - interval '1 minute'`,
  );
  await age.execute(
    query`update sonar.attempt set created_at = created_at - interval '1 minute', ended_at = ended_at - interval '1 minute'`,
  );
  await age.execute(query`update sonar.task set created_at = created_at - interval '1 minute'`);
  await age.execute(query`update sonar.finalization set finished_at = finished_at - interval '1 minute'`);
  return { scan, taskId: attempt.task_id };
}

test('a task tells all its attempts, and what the command of each said', async () => {
  const { taskId } = await twoAttempts();
  await using api = await serveApi(clone, objects);
  const listed = await api.ask('GET', `/v1/tasks/${taskId}/attempts`, { as: 'viewer' });
  expect(attemptListSchema.parse(listed.body).items).toMatchObject([
    {
      number: 1,
      worker: 'w1',
      accepted: false,
      outcome: 'failed',
      exitCode: 3,
      endReason: 'result',
      endDetail: null,
      files: 0,
      finalization: null,
    },
    {
      number: 2,
      accepted: true,
      outcome: 'completed',
      files: 1,
      finalization: { status: 'poisoned', error: expect.stringContaining('none of 1') },
    },
  ]);
  const first = await api.ask('GET', `/v1/tasks/${taskId}/logs?attempt=1`, { as: 'viewer' });
  const { stderr } = taskLogsSchema.parse(first.body);
  expect(Buffer.from(stderr!.head, 'base64').toString()).toBe('no route\u0000');
  expect(stderr).toMatchObject({ size: 14, truncated: true, output: null });
  expect((await api.ask('GET', `/v1/tasks/${taskId}/logs`)).body.attempt).toMatchObject({ number: 2 });
  expect(await api.ask('GET', `/v1/tasks/${taskId}/logs?attempt=3`)).toMatchObject({ status: 404 });
  expect(await api.ask('GET', `/v1/tasks/${newId()}/logs`)).toMatchObject({ status: 404 });
});

test('a file of a task is listed and can be fetched from the place the api names', async () => {
  const { taskId } = await twoAttempts();
  await using api = await serveApi(clone, objects);
  const { body } = await api.ask('GET', `/v1/tasks/${taskId}/outputs`, { as: 'viewer' });
  expect(body).toMatchObject({
    items: [{ attempt: 2, output: 'found', path: 'found.jsonl', size: 7, partial: false }],
    next: null,
  });
  const place = await api.ask('GET', `/v1/tasks/${taskId}/outputs/place?output=found&path=found.jsonl`);
  expect(await (await fetch(place.body.url)).text()).toBe('no json');
  expect(await api.ask('GET', `/v1/tasks/${taskId}/outputs/place?output=found&path=../x`)).toMatchObject({
    status: 404,
  });
});

async function story(api: ServedApi, id: string, limit: number): Promise<string[]> {
  const told: string[] = [];
  for (let after = ''; ; ) {
    const { status, body } = await api.ask('GET', `/v1/scans/${id}/events?limit=${limit}${after}`);
    expect(status).toBe(200);
    const { items, next } = scanEventListSchema.parse(body);
    if (items.length === 0) return told;
    told.push(...items.map((event) => `${event.kind} ${event.reason ?? ''}`.trim()));
    after = `&after=${next}`;
  }
}

test('what happened in a scan is told once and in order, however small the pages', async () => {
  const { scan } = await twoAttempts();
  await using api = await serveApi(clone, objects);
  const told = [
    'scan_started',
    'step_began',
    'placed',
    'ended failed',
    'placed',
    'ended completed',
    'poisoned',
    'scan_ended CompletedWithErrors',
  ];
  expect(await story(api, scan.scan_id, 100)).toEqual(told);
  expect(await story(api, scan.scan_id, 1)).toEqual(told);
  for (const after of [
    'bm90LW9uZQ',
    Buffer.from(`1970-01-01T00:00:00.000000Z nothing ${newId()}`).toString('base64url'),
  ])
    expect(await api.ask('GET', `/v1/scans/latest/events?after=${after}`)).toMatchObject({ status: 422 });
});

test('a scan is deleted by operators, once it has ended, and is not found from then on', async () => {
  const { scan, taskId } = await twoAttempts();
  await using api = await serveApi(clone, objects);
  expect(await api.ask('DELETE', '/v1/scans/latest', { as: 'viewer' })).toMatchObject({ status: 403 });
  expect(await api.ask('DELETE', `/v1/scans/${scan.scan_id}`, { as: 'operator' })).toMatchObject({
    status: 202,
    body: { id: scan.scan_id, status: 'CompletedWithErrors' },
  });
  for (const path of ['', '/events'])
    expect(await api.ask('GET', `/v1/scans/${scan.scan_id}${path}`)).toMatchObject({ status: 404 });
  for (const path of ['', '/attempts', '/logs', '/outputs'])
    expect(await api.ask('GET', `/v1/tasks/${taskId}${path}`)).toMatchObject({ status: 404 });
  expect(await api.ask('POST', `/v1/tasks/${taskId}/retry`)).toMatchObject({ status: 404 });
  expect(await api.ask('DELETE', `/v1/scans/${scan.scan_id}`)).toMatchObject({ status: 404 });
  expect((await api.ask('GET', '/v1/poison')).body.items).toEqual([]);
  expect((await api.ask('GET', '/v1/scans')).body.items).toEqual([]);
});
