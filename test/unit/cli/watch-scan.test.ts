import { createApiClient } from '#sonar/cli/api-client.ts';
import { type WatchEvent, watchScan } from '#sonar/cli/watch-scan.ts';
import { type Answer, problem, ScriptedApi } from './scripted-api.ts';
import { scanDetail, scanIds } from './views.ts';

let api: ScriptedApi;
beforeEach(async () => {
  api = await new ScriptedApi(() => ({ json: scanDetail() })).start();
});
afterEach(() => api.stop());

const clientOf = (timeoutMs = 1_000) =>
  createApiClient({ apiUrl: api.url, apiUrlSource: 'test', token: 't', tokenSource: 'test' }, { timeoutMs });

async function all(events: AsyncIterable<WatchEvent>): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of events) seen.push(event.kind === 'seen' ? event.detail.status : 'silent');
  return seen;
}

const inTurn = (...answers: Answer[]): ((request: unknown) => Answer) => {
  let turn = 0;
  return () => answers[Math.min(turn++, answers.length - 1)] as Answer;
};
const running = { json: scanDetail() };
const completed = { json: scanDetail({ status: 'Completed' }) };

test('a watch outlives a restart of the api', async () => {
  const kinds: string[] = [];
  for await (const event of watchScan(clientOf(), scanIds.first, { pollMs: 5, patienceMs: 5_000 })) {
    kinds.push(event.kind === 'seen' ? event.detail.status : 'silent');
    if (kinds.length === 1) await api.stop();
    if (event.kind === 'silent') {
      api.answer = () => completed;
      if (kinds.length === 2) await api.start();
    }
  }
  expect(kinds[0]).toBe('Running');
  expect(kinds[1]).toBe('silent');
  expect(kinds.at(-1)).toBe('Completed');
});

test.each([
  ['a connection that is cut', 'hang up' as const],
  ['an api without its database', problem(503, 'unavailable', 'no database')],
  ['a proxy without its api', { status: 502, text: '<html>Bad Gateway</html>' }],
  ['an api that fails', problem(500, 'internal', 'oops')],
])('%s is asked again', async (_, fault) => {
  api.answer = inTurn(running, fault, completed);
  expect(await all(watchScan(clientOf(), scanIds.first, { pollMs: 5 }))).toEqual([
    'Running',
    'silent',
    'Completed',
  ]);
});

test('an api that stays away ends the watch when the patience ends', async () => {
  const events = watchScan(clientOf(), scanIds.first, { pollMs: 5, patienceMs: 100 });
  await events.next();
  await api.stop();
  await expect(all(events)).rejects.toMatchObject({ code: 'unreachable' });
});

test('a wrong address is told at once, not after the patience', async () => {
  await api.stop();
  await expect(all(watchScan(clientOf(), scanIds.first))).rejects.toMatchObject({ code: 'unreachable' });
});

test('a scan that is gone is told at once, also under way', async () => {
  api.answer = inTurn(running, problem(404, 'not_found', 'no scan'));
  await expect(all(watchScan(clientOf(), scanIds.first, { pollMs: 5 }))).rejects.toMatchObject({
    code: 'not_found',
  });
});

test('latest is settled by the first answer', async () => {
  api.answer = inTurn(running, completed);
  await all(watchScan(clientOf(), 'latest', { pollMs: 5 }));
  expect(api.asked.map(({ url }) => url.pathname)).toEqual([
    '/v1/scans/latest',
    `/v1/scans/${scanIds.first}`,
  ]);
});

test('an abort ends the watch without a fault', async () => {
  const interruption = new AbortController();
  const events = watchScan(clientOf(), scanIds.first, { pollMs: 60_000, signal: interruption.signal });
  await events.next();
  const rest = all(events);
  interruption.abort();
  expect(await rest).toEqual([]);
});
