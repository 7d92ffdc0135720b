// No call of a worker is believed without the right signature, over the very bytes, about the right attempt.
import { newId } from '#sonar/platform/ids.ts';
import { deriveCredential, signBody } from '#sonar/platform/signing.ts';
import { calledAttempt, expectRefusal } from '../fixtures/called-attempt.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { identity, resultOf, testKeys } from '../fixtures/laboratory.ts';
import { sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { credentialOf } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

test('a signature of another attempt, an incarnation, another key or over other bytes is refused', async () => {
  await using work = await calledAttempt(clone, objects, 2);
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
  expect(await work.status()).toBe('Published');
});

test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
  'a call without the header %s, or with nonsense in it, is refused',
  async (header) => {
    await using work = await calledAttempt(clone, objects);
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
    expect(await work.status()).toBe('Published');
  },
);

test('what is verified is the body as it was sent, whatever its spacing and the order of its members', async () => {
  await using work = await calledAttempt(clone, objects);
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
    await using work = await calledAttempt(clone, objects);
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
  await using work = await calledAttempt(clone, objects);
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
  expect(await work.status()).toBe('Running');
});

test('a running attempt goes its whole way by the key that it was dispatched with, after the key was rotated', async () => {
  await using work = await calledAttempt(clone, objects);
  await clone.database.execute(query`update sonar.attempt set key_id = 'old'`);
  expectRefusal(await work.start(), 401, 'unauthenticated');
  const old = { secret: credentialOf(work.attempt.attempt_id, 'old') };
  const send = (call: string, body: string) => work.api.send(work.urlOf(call), body, old);
  expect(await send('started', work.startedBody)).toMatchObject({ body: { disposition: 'run' } });
  const self = identity(work.attempt, work.worker);
  const files = [{ size: 1, sha256: sha256('x') }];
  expect(await send('uploads', JSON.stringify({ ...self, files }))).toMatchObject({ status: 200 });
  const failed = resultOf(work.attempt, work.worker, { outcome: 'failed', exitCode: 1 });
  expectRefusal(await work.call('result', failed), 401, 'unauthenticated');
  expect(await send('result', JSON.stringify(failed))).toMatchObject({ body: { disposition: 'accepted' } });
});

test('a key that is gone refuses nothing for good: its callbacks get a fault of the server', async () => {
  await using work = await calledAttempt(clone, objects);
  await clone.database.execute(query`update sonar.attempt set key_id = 'lost'`);
  const answer = await work.start();
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(await work.status()).toBe('Published');
});

test('a request that was heard on the way and is sent again, header for header, changes nothing', async () => {
  await using work = await calledAttempt(clone, objects);
  const { lab, attempt, worker } = work;
  const recorded = (call: string, body: string) => {
    const headers = signBody(work.secret, newId(), new Date(), body);
    return () => work.api.send(work.urlOf(call), body, { secret: work.secret }, headers);
  };
  const self = identity(attempt, worker);
  const started = recorded('started', work.startedBody);
  const released = recorded('release', JSON.stringify({ ...self, reason: 'spot' }));
  expect(await started()).toMatchObject({ body: { disposition: 'run' } });
  expect(await released()).toMatchObject({ body: { disposition: 'accepted' } });
  await lab.place();
  const again = (await lab.published(work.scan))[0]!;
  const before = await lab.tasks(work.scan);
  expect(await started()).toMatchObject({ body: { disposition: 'skip' } });
  expect(await released()).toMatchObject({ body: { disposition: 'superseded' } });
  const late = recorded('result', JSON.stringify(resultOf(attempt, worker)));
  expect(await late()).toMatchObject({ body: { disposition: 'superseded' } });
  expect(await lab.tasks(work.scan)).toEqual(before);
  expect(again.attempt_id).not.toBe(attempt.attempt_id);
});

test('callbacks in another order than they were made: nothing before `started` counts, nothing after the end', async () => {
  await using work = await calledAttempt(clone, objects);
  const { attempt, worker } = work;
  expectRefusal(await work.result(), 403, 'forbidden');
  expectRefusal(await work.call('release', { reason: 'spot' }), 403, 'forbidden');
  expectRefusal(await work.call('uploads', { files: [{ size: 1, sha256: sha256('x') }] }), 403, 'forbidden');
  expect(await work.status()).toBe('Published');
  await work.start();
  await work.call('result', resultOf(attempt, worker, { outcome: 'failed', exitCode: 3 }));
  expect(await work.start()).toMatchObject({ body: { disposition: 'skip' } });
  expect(await work.call('release', { reason: 'spot' })).toMatchObject({
    body: { disposition: 'superseded' },
  });
  expect(await work.status()).toBe('Failed');
});

test("an attempt that nobody knows is nobody's: skip and superseded, or not found", async () => {
  await using work = await calledAttempt(clone, objects);
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

test('a message of another version is refused by name', async () => {
  await using work = await calledAttempt(clone, objects);
  const body = work.startedBody.replace('"v":1', '"v":2');
  const answer = await work.api.send(work.urlOf('started'), body, { secret: work.secret });
  expectRefusal(answer, 400, 'invalid_request');
  expect(answer.body.problems[0].path).toBe('body.v');
});
