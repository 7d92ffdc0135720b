// A machine that is about to be taken away: the worker hears it from the instance metadata, and goes in order.
import { createSpotMetadata } from '#sonar/worker/spot-metadata.ts';
import { startLong } from './long-command.ts';
import { interruptionIn, type MetadataServer, startMetadataServer } from './metadata-server.ts';
import { openWorkbench, type Workbench } from './workbench.ts';

const { signal } = new AbortController();
const look = (server: MetadataServer) => createSpotMetadata(server.url).look(signal);
const spotConfig = (server: MetadataServer) => ({ metadataUrl: server.url, metadataEveryMs: 20 });
const draining = (bench: Workbench) =>
  bench.watch.until('a draining pulse', () => bench.api.of('pulse').at(-1)?.draining === true);

test('a notice stops the pulling, is told, and what cannot end in time is ended and then released', async () => {
  await using server = await startMetadataServer();
  await using bench = await openWorkbench();
  const worker = bench.worker({ ...spotConfig(server), drainMs: 600_000, slots: 2 });
  await worker.start();
  const long = await startLong(bench);
  // Of the time that is left, ten seconds are kept for the release and half a second is the grace.
  server.action = interruptionIn(11_500);
  await draining(bench);
  bench.puller.push(bench.message(['/bin/true']));
  expect(bench.api.of('pulse').at(-1)).toMatchObject({ freeSlots: 0, attempts: [long.attemptId] });
  expect(await worker.done).toEqual({ reason: 'spot' });
  expect(bench.api.of('release')).toMatchObject([{ attemptId: long.attemptId, reason: 'spot' }]);
  expect(bench.api.of('result')).toEqual([]);
  expect([bench.puller.acked, bench.puller.queued]).toEqual([1, 1]);
});

test('what ends before the interruption is a result, and no release follows it', async () => {
  await using server = await startMetadataServer();
  await using bench = await openWorkbench();
  const worker = bench.worker(spotConfig(server));
  await worker.start();
  const long = await startLong(bench, 'until [ -e end ]; do sleep 0.02; done');
  server.action = interruptionIn(110_000);
  await draining(bench);
  long.end();
  expect(await worker.done).toEqual({ reason: 'spot' });
  expect(bench.api.results.get(long.attemptId)).toMatchObject({ outcome: 'completed' });
  expect(bench.api.of('release')).toEqual([]);
});

test('a recommendation only stops the pulling; the interruption after it sets the bound', async () => {
  await using server = await startMetadataServer();
  await using bench = await openWorkbench();
  const worker = bench.worker({ ...spotConfig(server), drainMs: 0 });
  await worker.start();
  await startLong(bench);
  server.rebalance = JSON.stringify({ noticeTime: new Date().toISOString() });
  await draining(bench);
  const pulses = bench.api.of('pulse').length;
  await bench.watch.until('it pulses on', () => bench.api.of('pulse').length > pulses + 5);
  expect(bench.api.of('release')).toEqual([]);
  server.action = interruptionIn(120_000, 'hibernate');
  expect(await worker.done).toEqual({ reason: 'spot' });
  expect(bench.api.of('release')).toMatchObject([{ reason: 'spot' }]);
});

test('a first stop during such a drain gives it the bound of a stop, a second ends it at once', async () => {
  await using server = await startMetadataServer();
  await using bench = await openWorkbench();
  const worker = bench.worker({ ...spotConfig(server), drainMs: 600_000 });
  await worker.start();
  const long = await startLong(bench);
  server.rebalance = '{}';
  await draining(bench);
  const first = worker.stop();
  const pulses = bench.api.of('pulse').length;
  await bench.watch.until('it pulses on', () => bench.api.of('pulse').length > pulses + 5);
  expect(bench.api.of('release')).toEqual([]);
  await Promise.all([first, worker.stop()]);
  expect(bench.api.of('release')).toMatchObject([{ attemptId: long.attemptId, reason: 'shutdown' }]);
});

test('a machine that is to be taken registers no worker', async () => {
  await using server = await startMetadataServer();
  await using bench = await openWorkbench();
  server.action = interruptionIn(60_000);
  const worker = bench.worker(spotConfig(server));
  await worker.start();
  expect(await worker.done).toEqual({ reason: 'spot' });
  expect(bench.api.of('register')).toEqual([]);
});

test('a metadata service that hangs, fails or talks nonsense keeps no worker from its work', async () => {
  await using server = await startMetadataServer();
  await using bench = await openWorkbench();
  server.script = () => 'hang';
  await bench.worker(spotConfig(server)).start();
  const message = bench.message(['/bin/true']);
  bench.puller.push(message);
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed' });
  expect(bench.api.of('pulse').at(-1)).toMatchObject({ draining: false });
});

test('the token comes first, is kept, and is fetched anew when it has run out', async () => {
  await using server = await startMetadataServer();
  const metadata = createSpotMetadata(server.url);
  const [token, action, rebalance] = [
    '/latest/api/token',
    '/latest/meta-data/spot/instance-action',
    '/latest/meta-data/events/recommendations/rebalance',
  ];
  expect(await metadata.look(signal)).toEqual({ kind: 'quiet' });
  expect(server.log.splice(0)).toEqual([`PUT ${token} 200`, `GET ${action} 404`, `GET ${rebalance} 404`]);
  expect(await metadata.look(signal)).toEqual({ kind: 'quiet' });
  expect(server.log.splice(0)).toEqual([`GET ${action} 404`, `GET ${rebalance} 404`]);
  server.expireTokens();
  server.action = interruptionIn(60_000, 'stop');
  expect(await metadata.look(signal)).toMatchObject({ kind: 'interruption', action: 'stop' });
  expect(server.log).toEqual([`GET ${action} 401`, `PUT ${token} 200`, `GET ${action} 200`]);
});

test.each([
  ['no time', { action: 'terminate' }, { kind: 'interruption', action: 'terminate', at: null }],
  [
    'a time that is none',
    { action: 'stop', time: 'soon' },
    { kind: 'interruption', action: 'stop', at: null },
  ],
  ['a time', { action: 'x', time: '2030-01-02T03:04:05Z' }, { kind: 'interruption', at: 1_893_553_445_000 }],
  ['the action none', { action: 'none' }, { kind: 'quiet' }],
] as const)('an instance action with %s', async (_, body, expected) => {
  await using server = await startMetadataServer();
  server.action = JSON.stringify(body);
  expect(await look(server)).toMatchObject(expected);
});

test.each([
  ['an action that is a page', { action: '<html>log in</html>' }],
  ['an action that is another object', { action: '{"status":"ok"}' }],
  ['an endless action', { action: 'x'.repeat(100_000) }],
  ['a recommendation that is a page', { rebalance: '<html>log in</html>' }],
  ['a token that is a page', { script: () => ({ status: 200, body: '<html>\nlog in</html>' }) }],
  ['a service without tokens', { script: () => ({ status: 404, body: '' }) }],
  ['a service that is forbidden', { script: () => ({ status: 403, body: '' }) }],
  ['a service that redirects', { script: () => ({ status: 302, body: '' }) }],
])('%s is no warning', async (_, behaviour) => {
  await using server = await startMetadataServer();
  Object.assign(server, behaviour);
  expect(await look(server)).toMatchObject({ kind: 'unavailable', reason: expect.any(String) });
});

test('tokens that are refused again and again are asked for twice a look, no more', async () => {
  await using server = await startMetadataServer();
  server.script = ({ method }) => (method === 'GET' ? { status: 401, body: '' } : undefined);
  expect(await look(server)).toMatchObject({ kind: 'unavailable' });
  expect(server.log).toHaveLength(4);
});

test('nobody listens: it is said, and no more', async () => {
  const metadata = createSpotMetadata('http://127.0.0.1:1');
  expect(await metadata.look(signal)).toMatchObject({ kind: 'unavailable' });
});
