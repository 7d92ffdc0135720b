// Registration and pulses, as a worker sends them.
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { serveApi } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

async function withWorker() {
  const api = await serveApi(clone, objects);
  const registration = {
    v: 1,
    name: 'w1',
    incarnationId: newId(),
    location: 'here',
    image: 'img',
    tags: ['t'],
    slots: 2,
  };
  const register = (changes: object = {}) =>
    api.ask('POST', '/v1/workers', { as: 'worker', body: { ...registration, ...changes } });
  const { body } = await register();
  const secret: string = body.secret;
  const pulse = (
    changes: object = {},
    signer: { secret: string; at?: Date } = { secret },
    id = registration.incarnationId,
  ) =>
    api.send(
      `/v1/workers/${id}/pulses`,
      JSON.stringify({
        ...registration,
        sequence: 1,
        freeSlots: 2,
        draining: false,
        attempts: [],
        ...changes,
      }),
      signer,
    );
  return {
    api,
    registration,
    register,
    pulse,
    secret,
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

test('a registration that is sent again gets the same secret, and no second incarnation', async () => {
  await using work = await withWorker();
  expect(await work.register()).toMatchObject({
    status: 200,
    body: { secret: work.secret, pulseEveryMs: 10_000 },
  });
  expect(
    await clone.database.rows(query`select worker_name, replaced_at from sonar.worker_incarnation`),
  ).toEqual([{ worker_name: 'w1', replaced_at: null }]);
});

test("another worker's incarnation cannot be taken", async () => {
  await using work = await withWorker();
  expect(await work.register({ name: 'w2' })).toMatchObject({ status: 409, body: { code: 'conflict' } });
});

test('of one name the newer registration wins, and the older is told', async () => {
  await using work = await withWorker();
  await work.register({ incarnationId: newId() });
  expect(await work.pulse()).toMatchObject({ status: 200, body: { replaced: true } });
});

test('a registration that is sent again after a newer one replaces nobody', async () => {
  await using work = await withWorker();
  const newer = newId();
  await work.register({ incarnationId: newer });
  expect(await work.register()).toMatchObject({ status: 200, body: { secret: work.secret } });
  expect(
    await clone.database.rows(
      query`select incarnation_id from sonar.worker_incarnation where replaced_at is null`,
    ),
  ).toEqual([{ incarnation_id: newer }]);
  expect(await work.pulse()).toMatchObject({ body: { replaced: true } });
});

test('many registrations of one name at once leave one that counts', async () => {
  await using work = await withWorker();
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => work.register({ incarnationId: newId() })),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const [row] = await clone.database.rows(
    query`select count(*)::integer as current from sonar.worker_incarnation where replaced_at is null`,
  );
  expect(row).toEqual({ current: 1 });
});

test('a pulse is believed by its signature only, and is taken once', async () => {
  await using work = await withWorker();
  expect(await work.pulse({ sequence: 3, freeSlots: 1 })).toMatchObject({
    status: 200,
    body: { replaced: false, cancel: [] },
  });
  expect(await work.pulse({ sequence: 3, freeSlots: 2 })).toMatchObject({ status: 200 });
  const kept = query`select pulse_sequence, free_slots from sonar.worker_incarnation`;
  expect(await clone.database.rows(kept)).toEqual([{ pulse_sequence: 3, free_slots: 1 }]);
  const other = { secret: Buffer.alloc(32, 9).toString('base64') };
  expect(await work.pulse({ sequence: 4 }, other)).toMatchObject({
    status: 401,
    body: { code: 'unauthenticated' },
  });
  const skewed = { secret: work.secret, at: new Date(Date.now() - 400_000) };
  expect(await work.pulse({ sequence: 4 }, skewed)).toMatchObject({
    status: 401,
    body: { code: 'clock_skew', serverTime: expect.any(String) },
  });
  expect(await work.pulse({ sequence: 4, name: 'w2' })).toMatchObject({
    status: 403,
    body: { code: 'forbidden' },
  });
  expect(await work.pulse({ sequence: 4, incarnationId: newId() })).toMatchObject({ status: 403 });
  expect(await clone.database.rows(kept)).toEqual([{ pulse_sequence: 3, free_slots: 1 }]);
});

test('an incarnation that nobody knows is told to register', async () => {
  await using work = await withWorker();
  expect(await work.pulse({}, { secret: work.secret }, newId())).toMatchObject({
    status: 404,
    body: { detail: expect.stringContaining('register again') },
  });
});

test.each([
  ['a NUL in its image', { image: 'nul \0' }],
  ['half a surrogate pair in its location', { location: '\ud800' }],
  ['no tag', { tags: [] }],
  ['a tag that is no name', { tags: ['Not A Name'] }],
  ['no slots', { slots: 0 }],
  ['a name with a slash', { name: '../w' }],
])('a registration with %s is a clear 400', async (_what, changes) => {
  await using work = await withWorker();
  expect(await work.register({ incarnationId: newId(), ...changes })).toMatchObject({
    status: 400,
    body: { code: 'invalid_request' },
  });
});
