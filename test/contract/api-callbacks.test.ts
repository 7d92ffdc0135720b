// What tag workers call, by signed calls: started, uploads, result, release. What was believed once is not done again.
import { resultDigest } from '#sonar/domain/result-digest.ts';
import { calledAttempt, expectRefusal } from '../fixtures/called-attempt.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { resultOf } from '../fixtures/laboratory.ts';
import { put, sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

test('a task goes its whole way by signed calls: started, uploads, result, read', async () => {
  await using work = await calledAttempt(clone, objects);
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
  await using work = await calledAttempt(clone, objects);
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
  await using work = await calledAttempt(clone, objects);
  expect((await work.start()).body.disposition).toBe('run');
  expect((await work.start()).body.disposition).toBe('run');
  expect((await work.result()).body.disposition).toBe('accepted');
  const before = await work.lab.tasks(work.scan);
  expect((await work.result()).body.disposition).toBe('duplicate');
  expect((await work.result({ outcome: 'failed', exitCode: 1 })).body.disposition).toBe('conflict');
  expect((await work.start()).body.disposition).toBe('skip');
  expect(await work.lab.tasks(work.scan)).toEqual(before);
});

test('a digest that is not that of the result is refused, and the task stays as it was', async () => {
  await using work = await calledAttempt(clone, objects);
  await work.start();
  expectRefusal(await work.result({ digest: 'f'.repeat(64) }), 422, 'invalid');
  const honest = resultOf(work.attempt, work.worker, { exitCode: 0 });
  expectRefusal(await work.call('result', { ...honest, exitCode: 1 }), 422, 'invalid');
  expect(resultDigest(honest)).toBe(honest.digest);
  expect(await work.status()).toBe('Running');
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
  await using work = await calledAttempt(clone, objects);
  await work.start();
  const answer = await work.result({ manifest });
  expectRefusal(answer, 422, 'invalid');
  expect(answer.body.detail).toContain(message);
  expect(await work.status()).toBe('Running');
});

test('what a command said never costs its result: hostile text is accepted and made storable', async () => {
  await using work = await calledAttempt(clone, objects);
  await work.start();
  const failure = { code: 'command_failed', message: 'nul \0 half \ud800' };
  expect(await work.result({ outcome: 'failed', exitCode: 1, failure })).toMatchObject({
    body: { disposition: 'accepted' },
  });
  expect(await work.lab.tasks(work.scan)).toMatchObject([{ failure_message: 'nul \uFFFD half \uFFFD' }]);
});

test('an attempt that is over is granted no more places', async () => {
  await using work = await calledAttempt(clone, objects);
  await work.start();
  await work.result();
  expectRefusal(await work.call('uploads', { files: [{ size: 1, sha256: sha256('x') }] }), 409, 'conflict');
});

test('an output over the cap and an input that the step does not have are refused', async () => {
  await using work = await calledAttempt(clone, objects);
  await work.start();
  const size = work.lab.settings.SONAR_OUTPUT_CAP_BYTES + 1;
  expectRefusal(await work.call('uploads', { files: [{ size, sha256: sha256('x') }] }), 422, 'invalid');
  expectRefusal(await work.call('inputs', { input: 'found', after: null }), 422, 'invalid');
});

test('a release is taken back to Pending, wakes the scan, and is superseded the second time', async () => {
  await using work = await calledAttempt(clone, objects);
  await work.start();
  expect(await work.call('release', { reason: 'spot' })).toMatchObject({ body: { disposition: 'accepted' } });
  expect(await work.status()).toBe('Pending');
  expect(work.api.woken).toEqual([work.scan.scan_id]);
  const listed = await work.api.ask('GET', `/v1/tasks?scan=${work.scan.scan_id}`);
  expect(listed.body.items).toMatchObject([{ status: 'Pending', releases: 1, failure: null }]);
  expect(await work.call('release', { reason: 'spot' })).toMatchObject({
    body: { disposition: 'superseded' },
  });
});
