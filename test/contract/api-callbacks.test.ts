// What tag workers call: nothing is believed without the right signature over the very bytes, and nothing that was
// believed once is done again.
import { type DeliveryId } from '#sonar/contracts/ids.ts';
import { problemSchema } from '#sonar/contracts/scan-api.ts';
import type { Result } from '#sonar/contracts/worker-api.ts';
import { resultDigest } from '#sonar/domain/result-digest.ts';
import { newId } from '#sonar/platform/ids.ts';
import { deriveCredential } from '#sonar/platform/signing.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { type DispatchedScan, dispatchedScan } from '../fixtures/dispatched-scan.ts';
import { identity, resultOf, testKeys } from '../fixtures/laboratory.ts';
import { put, sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { type Answer, credentialOf, serveApi } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

/** A dispatched attempt, and the API that its worker calls. */
async function withAttempt(lines = 1) {
  const scan = await dispatchedScan(clone, objects, lines === 1 ? { source: oneStep } : { lines });
  const api = await serveApi(clone, objects);
  const { attempt, worker } = scan;
  const secret = credentialOf(attempt.attempt_id);
  const deliveryId = newId<DeliveryId>();
  const urlOf = (call: string) => `/v1/attempts/${attempt.attempt_id}/${call}`;
  const call = (name: string, body: object, signer = { secret }): Promise<Answer> =>
    api.send(urlOf(name), JSON.stringify({ ...identity(attempt, worker), ...body }), signer);
  return {
    ...scan,
    api,
    secret,
    urlOf,
    call,
    start: () => call('started', { deliveryId, pulseSequence: worker.sequence }),
    result: (changes: Partial<Result> = {}) => call('result', resultOf(attempt, worker, changes)),
    startedBody: JSON.stringify({ ...identity(attempt, worker), deliveryId, pulseSequence: worker.sequence }),
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

const statusOf = async ({ lab, scan }: Pick<DispatchedScan, 'lab' | 'scan'>) =>
  (await lab.tasks(scan))[0]?.status;

function expectRefusal(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
  expect(problemSchema.strict().safeParse(answer.body).success).toBe(true);
}

test('a task goes its whole way by signed calls: started, uploads, result, read', async () => {
  await using work = await withAttempt();
  const { lab, scan, api, call, start } = work;
  expect(await start()).toMatchObject({
    status: 200,
    body: { disposition: 'run', serverTime: expect.any(String) },
  });
  const bytes = Buffer.from('{"url":"http://a.example.com/"}\n');
  const file = { size: bytes.length, sha256: sha256(bytes) };
  const granted = await call('uploads', { files: [file] });
  expect(granted.status).toBe(200);
  await put(granted.body.files[0], bytes);
  const manifest = [{ output: 'found', path: 'found.jsonl', ...file }];
  expect(await work.result({ manifest })).toMatchObject({ status: 200, body: { disposition: 'accepted' } });
  expect(api.woken).toEqual([scan.scan_id]);
  await lab.finalize();
  expect(await clone.database.rows(query`select key from sonar.inventory`)).toEqual([
    { key: 'http://a.example.com/' },
  ]);
});

test('a granted upload takes exactly the bytes that it was asked for, once', async () => {
  await using work = await withAttempt();
  await work.start();
  const granted = await work.call('uploads', { files: [{ size: 5, sha256: sha256('first') }] });
  const [place] = granted.body.files as { url: string; headers: Record<string, string> }[];
  const { 'content-length': _, ...headers } = place!.headers;
  const send = async (body: string) => {
    const answer = await fetch(place!.url, { method: 'PUT', headers, body });
    await answer.arrayBuffer();
    return answer.status;
  };
  expect(await send('longer than five')).toBe(403);
  expect(await send('first')).toBe(200);
  expect(await send('other')).toBe(412);
});

test('the same call again, byte for byte, changes nothing', async () => {
  await using work = await withAttempt();
  expect((await work.start()).body.disposition).toBe('run');
  expect((await work.start()).body.disposition).toBe('run');
  expect((await work.result()).body.disposition).toBe('accepted');
  const before = await work.lab.tasks(work.scan);
  expect((await work.result()).body.disposition).toBe('duplicate');
  expect((await work.result({ outcome: 'failed', exitCode: 1 })).body.disposition).toBe('conflict');
  expect((await work.start()).body.disposition).toBe('skip');
  expect(await work.lab.tasks(work.scan)).toEqual(before);
});

test('a signature of another attempt, an incarnation, another key or over other bytes is refused', async () => {
  await using work = await withAttempt(2);
  const [, other] = work.attempts;
  const foreign = [
    credentialOf(other!.attempt_id),
    credentialOf(work.attempt.attempt_id, 'old'),
    deriveCredential(testKeys.get('new')!, 'incarnation', work.attempt.attempt_id),
    work.worker.secret,
    Buffer.alloc(32).toString('base64'),
  ];
  for (const secret of foreign)
    expectRefusal(
      await work.api.send(work.urlOf('started'), work.startedBody, { secret }),
      401,
      'unauthenticated',
    );
  const signedOther = { secret: work.secret, body: `${work.startedBody} ` };
  expectRefusal(
    await work.api.send(work.urlOf('started'), work.startedBody, signedOther),
    401,
    'unauthenticated',
  );
  expect(await statusOf(work)).toBe('Published');
});

test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
  'a call without the header %s, or with nonsense in it, is refused',
  async (header) => {
    await using work = await withAttempt();
    for (const value of ['', 'nonsense'])
      expectRefusal(
        await work.api.send(
          work.urlOf('started'),
          work.startedBody,
          { secret: work.secret },
          { [header]: value },
        ),
        401,
        'unauthenticated',
      );
    expect(await statusOf(work)).toBe('Published');
  },
);

test('what is verified is the body as it was sent, whatever its spacing and the order of its members', async () => {
  await using work = await withAttempt();
  const spaced = JSON.stringify(JSON.parse(work.startedBody), null, 3);
  expect(await work.api.send(work.urlOf('started'), spaced, { secret: work.secret })).toMatchObject({
    status: 200,
  });
  const reversed = JSON.stringify(
    Object.fromEntries(Object.entries(JSON.parse(work.startedBody) as object).toReversed()),
  );
  expect(await work.api.send(work.urlOf('started'), reversed, { secret: work.secret })).toMatchObject({
    status: 200,
  });
});

test.each([-301, 301])(
  'a clock that is %i s off is told the server time, and may try again',
  async (seconds) => {
    await using work = await withAttempt();
    const at = new Date(Date.now() + seconds * 1_000);
    const skewed = await work.api.send(work.urlOf('started'), work.startedBody, { secret: work.secret, at });
    expectRefusal(skewed, 401, 'clock_skew');
    expect(Math.abs(Date.parse(skewed.body.serverTime) - Date.now())).toBeLessThan(60_000);
    const corrected = { secret: work.secret, at: new Date(skewed.body.serverTime) };
    expect(await work.api.send(work.urlOf('started'), work.startedBody, corrected)).toMatchObject({
      status: 200,
    });
  },
);

test('a body that names another attempt, dispatch key, worker or incarnation than its signature is for is refused', async () => {
  await using work = await withAttempt();
  const foreign = [
    { attemptId: newId() },
    { dispatchKey: 'other' },
    { worker: 'w2' },
    { incarnationId: newId() },
  ];
  for (const changes of foreign) {
    const body = JSON.stringify({ ...JSON.parse(work.startedBody), ...changes });
    expectRefusal(
      await work.api.send(work.urlOf('started'), body, { secret: work.secret }),
      403,
      'forbidden',
    );
  }
  await work.start();
  for (const changes of [{ worker: 'w2' }, { incarnationId: newId() }]) {
    const claim = { ...resultOf(work.attempt, work.worker), ...changes };
    expectRefusal(await work.call('result', claim), 403, 'forbidden');
    expectRefusal(await work.call('release', { reason: 'spot', ...changes }), 403, 'forbidden');
    expectRefusal(
      await work.call('uploads', { files: [{ size: 1, sha256: sha256('x') }], ...changes }),
      403,
      'forbidden',
    );
  }
  expect(await statusOf(work)).toBe('Running');
});

test('credentials stay verifiable when the master key rotates', async () => {
  await using work = await withAttempt();
  await clone.database.execute(query`update sonar.attempt set key_id = 'old'`);
  expectRefusal(await work.start(), 401, 'unauthenticated');
  const old = { secret: credentialOf(work.attempt.attempt_id, 'old') };
  expect(await work.api.send(work.urlOf('started'), work.startedBody, old)).toMatchObject({ status: 200 });
});

test('a digest that is not that of the result is refused, and the task stays as it was', async () => {
  await using work = await withAttempt();
  await work.start();
  expectRefusal(await work.result({ digest: 'f'.repeat(64) }), 422, 'invalid');
  const honest = resultOf(work.attempt, work.worker, { exitCode: 0 });
  expectRefusal(await work.call('result', { ...honest, exitCode: 1 }), 422, 'invalid');
  expect(resultDigest(honest)).toBe(honest.digest);
  expect(await statusOf(work)).toBe('Running');
});

const entry = { output: 'found', path: 'found.jsonl', size: 1, sha256: sha256('x') };
test.each([
  ['an output that the step does not declare', [{ ...entry, output: 'other' }], 'declares no output "other"'],
  ['a path that leaves the output', [{ ...entry, path: '../x' }], 'unsafe path "../x"'],
  ['an absolute path', [{ ...entry, path: '/etc/passwd' }], 'unsafe path "/etc/passwd"'],
  ['a path through nothing', [{ ...entry, path: 'a//b' }], 'unsafe path "a//b"'],
  ['a path with a NUL', [{ ...entry, path: 'a\0b' }], 'unsafe path'],
  ['a path with half a surrogate pair', [{ ...entry, path: 'a\ud800' }], 'unsafe path'],
  ['one place twice', [entry, { ...entry, sha256: sha256('y') }], 'twice'],
])('a manifest with %s is refused', async (_what, manifest, message) => {
  await using work = await withAttempt();
  await work.start();
  const answer = await work.result({ manifest });
  expectRefusal(answer, 422, 'invalid');
  expect(answer.body.detail).toContain(message);
  expect(await statusOf(work)).toBe('Running');
});

test('what a command said never costs its result: hostile text is accepted and made storable', async () => {
  await using work = await withAttempt();
  await work.start();
  const failure = { code: 'command_failed', message: 'nul \0 half \ud800' };
  expect(await work.result({ outcome: 'failed', exitCode: 1, failure })).toMatchObject({
    body: { disposition: 'accepted' },
  });
  expect(await work.lab.tasks(work.scan)).toMatchObject([{ failure_message: 'nul \uFFFD half \uFFFD' }]);
});

test("an attempt that nobody knows is nobody's: skip and superseded, or not found", async () => {
  await using work = await withAttempt();
  const url = (call: string) => `/v1/attempts/${newId()}/${call}`;
  const send = (call: string, body: object) =>
    work.api.send(url(call), JSON.stringify(body), { secret: work.secret });
  const self = identity(work.attempt, work.worker);
  expect(await send('started', JSON.parse(work.startedBody) as object)).toMatchObject({
    body: { disposition: 'skip' },
  });
  expect(await send('result', resultOf(work.attempt, work.worker))).toMatchObject({
    body: { disposition: 'superseded' },
  });
  expect(await send('release', { ...self, reason: 'spot' })).toMatchObject({
    body: { disposition: 'superseded' },
  });
  expectRefusal(
    await send('uploads', { ...self, files: [{ size: 1, sha256: sha256('x') }] }),
    404,
    'not_found',
  );
  expectRefusal(await send('inputs', { ...self, input: 'found', after: null }), 404, 'not_found');
});

test('an attempt that is over is granted no more places', async () => {
  await using work = await withAttempt();
  await work.start();
  await work.result();
  expectRefusal(await work.call('uploads', { files: [{ size: 1, sha256: sha256('x') }] }), 409, 'conflict');
});

test('an output over the cap and an input that the step does not have are refused', async () => {
  await using work = await withAttempt();
  await work.start();
  const size = work.lab.settings.SONAR_OUTPUT_CAP_BYTES + 1;
  expectRefusal(await work.call('uploads', { files: [{ size, sha256: sha256('x') }] }), 422, 'invalid');
  expectRefusal(await work.call('inputs', { input: 'found', after: null }), 422, 'invalid');
});

test('a release is taken back to Pending, wakes the scan, and is superseded the second time', async () => {
  await using work = await withAttempt();
  await work.start();
  expect(await work.call('release', { reason: 'spot' })).toMatchObject({ body: { disposition: 'accepted' } });
  expect(await statusOf(work)).toBe('Pending');
  expect(work.api.woken).toEqual([work.scan.scan_id]);
  expect(await work.call('release', { reason: 'spot' })).toMatchObject({
    body: { disposition: 'superseded' },
  });
});

test('a message of another version is refused by name', async () => {
  await using work = await withAttempt();
  const body = work.startedBody.replace('"v":1', '"v":2');
  const answer = await work.api.send(work.urlOf('started'), body, { secret: work.secret });
  expectRefusal(answer, 400, 'invalid_request');
  expect(answer.body.problems[0].path).toBe('body.v');
});
