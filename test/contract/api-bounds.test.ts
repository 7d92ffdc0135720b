// What a worker or an operator sends is bounded where it is taken, so that nothing fails later as our own fault.
import type { InputFile } from '#sonar/contracts/worker-api.ts';
import { newId } from '#sonar/platform/ids.ts';
import { calledAttempt, expectRefusal } from '../fixtures/called-attempt.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { fanOutAndIn, oneStep } from '../fixtures/definition-texts.ts';
import { identity, openLaboratory } from '../fixtures/laboratory.ts';
import { sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { credentialOf, serveApi } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

describe('a pulse', () => {
  /** Registered by a token for tag `t` and names that start with `w`. */
  async function coveredWorker() {
    const api = await serveApi(clone, objects);
    const made = await api.ask('POST', '/v1/tokens', {
      body: { name: 'only t', role: 'worker', tags: ['t'], namePrefix: 'w' },
    });
    const authorization = `Bearer ${made.body.token as string}`;
    const self = {
      v: 1,
      name: 'w1',
      incarnationId: newId(),
      location: 'here',
      image: 'img',
      tags: ['t'],
      slots: 2,
    };
    const { body } = await api.request({
      method: 'POST',
      url: '/v1/workers',
      headers: { authorization },
      payload: self,
    });
    const pulse = (changes: object = {}, by: string = authorization) =>
      api.send(
        `/v1/workers/${self.incarnationId}/pulses`,
        JSON.stringify({ ...self, sequence: 1, freeSlots: 2, draining: false, attempts: [], ...changes }),
        { secret: body.secret },
        { authorization: by },
      );
    return { api, pulse, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() };
  }
  const tags = () => clone.database.rows(query`select tags, pulse_sequence from sonar.worker_incarnation`);

  test('with a tag that its token does not cover is refused, and changes nothing', async () => {
    await using work = await coveredWorker();
    expectRefusal(await work.pulse({ tags: ['t', 'secret'] }), 403, 'forbidden');
    expect(await tags()).toEqual([{ tags: ['t'], pulse_sequence: 0 }]);
    expect(await work.pulse()).toMatchObject({ status: 200 });
    expect(await tags()).toEqual([{ tags: ['t'], pulse_sequence: 1 }]);
  });

  test('by a token that does not cover its name is refused', async () => {
    await using work = await coveredWorker();
    const { body } = await work.api.ask('POST', '/v1/tokens', {
      body: { name: 'others', role: 'worker', namePrefix: 'x' },
    });
    expectRefusal(await work.pulse({}, `Bearer ${body.token as string}`), 403, 'forbidden');
  });

  test('by a token of another workspace is refused', async () => {
    await using work = await coveredWorker();
    await clone.database.execute(query`update sonar.worker_incarnation set workspace_id = 'other'`);
    expectRefusal(await work.pulse(), 403, 'forbidden');
  });
});

const entry = { output: 'found', path: 'found.jsonl', size: 1, sha256: sha256('x') };
test.each([
  ['a path of 1,000 characters that are 3,000 bytes', { manifest: [{ ...entry, path: '山'.repeat(1_000) }] }],
  ['a path of 1,025 bytes', { manifest: [{ ...entry, path: 'x'.repeat(1_025) }] }],
  ['an exit code past 32 bits', { outcome: 'failed' as const, exitCode: 3_221_225_477 }],
])(
  'a result with %s is refused as its sender’s fault, and the task stays as it was',
  async (_what, changes) => {
    await using work = await calledAttempt(clone, objects);
    await work.start();
    expectRefusal(await work.result(changes), 400, 'invalid_request');
    expect(await work.status()).toBe('Running');
  },
);

test('a path of exactly 1,024 bytes is taken, however incompressible', async () => {
  await using work = await calledAttempt(clone, objects);
  await work.start();
  const path = Array.from({ length: 341 }, (_, n) => String.fromCharCode(0x4e00 + ((n * 7_919) % 20_000)));
  const manifest = [{ ...entry, path: `${path.join('')}x` }];
  expect(await work.result({ manifest })).toMatchObject({ status: 200, body: { disposition: 'accepted' } });
});

test('the pages of an input go on behind a path of any length that was accepted', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(fanOutAndIn, { inputs: { lines: 'a' } });
  await lab.plan(scan);
  await lab.place();
  const [parent] = await lab.published(scan, 'each');
  await lab.run(parent!, worker, { found: { 'found.txt': 'x' } });
  await clone.database.execute(query`
    insert into sonar.output_file (attempt_id, workspace_id, task_id, output, path, object_key, size, sha256, partial)
    select attempt_id, workspace_id, task_id, output, lpad(n::text, 4, '0') || repeat('山', 340), object_key, size, sha256, false
    from sonar.output_file, generate_series(1, 204) as n`);
  await lab.plan(scan);
  await lab.place();
  const [child] = await lab.published(scan, 'child');
  await lab.start(child!, worker);
  await using api = await serveApi(clone, objects);
  const ask = async (after: string | null) => {
    const { status, body } = await api.send(
      `/v1/attempts/${child!.attempt_id}/inputs`,
      JSON.stringify({ ...identity(child!, worker), input: 'found', after }),
      { secret: credentialOf(child!.attempt_id) },
    );
    expect(status).toBe(200);
    return body as { files: InputFile[]; next: string | null };
  };
  const first = await ask(null);
  const second = await ask(first.next);
  expect([first.files.length, second.files.length, second.next]).toEqual([200, 5, null]);
  expect(first.next?.length).toBeGreaterThan(1_024);
  const paths = [...first.files, ...second.files].map((file) => file.path);
  expect(new Set(paths).size).toBe(205);
  expect(paths.at(-1)).toBe('found.txt');
});

test.each([
  ['half a surrogate pair', '\\uD800', 'holds a NUL or half a surrogate pair'],
  ['a NUL', '\\0', 'holds a NUL or half a surrogate pair'],
])('a definition with %s behind an escape is refused by its place', async (_what, escape, message) => {
  await using api = await serveApi(clone, objects);
  const source = `sonar: 1\nname: x\nsteps:\n  a:\n    tags: [t]\n    command: [probe, "a${escape}b"]\n`;
  const refused = await api.ask('POST', '/v1/definitions', { body: { source } });
  expectRefusal(refused, 422, 'invalid');
  expect(refused.body.problems).toEqual([
    expect.objectContaining({
      path: 'steps.a.command[1]',
      line: 6,
      column: 22,
      message: expect.stringContaining(message),
    }),
  ]);
});

test.each(['Completed', 'Cancelled'])(
  'a start again of a scan that is %s starts no workflow',
  async (status) => {
    await using api = await serveApi(clone, objects);
    await api.ask('POST', '/v1/definitions', { body: { source: oneStep } });
    const start = () =>
      api.ask('POST', '/v1/scans', {
        body: { definition: 'one-step', scope: { allow: ['example.com'] }, clientKey: 'k' },
      });
    const first = await start();
    await clone.database.execute(query`update sonar.scan set status = ${status}, finished_at = now()`);
    expect(await start()).toMatchObject({ status: 200, body: { id: first.body.id, status } });
    expect(api.temporal.calls).toEqual([`startScan ${first.body.id as string}`]);
  },
);
