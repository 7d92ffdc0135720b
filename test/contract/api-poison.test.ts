// What could not be read, as operators see it and have it read again.
import { poisonListSchema } from '#sonar/contracts/poison-api.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { serveApi } from '../fixtures/served-api.ts';
import { unreadResults } from '../fixtures/unread-results.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const { withResults } = unreadResults(clone, objects);

test('poison is listed by pages and by scan, shown with its sample, and repaired by operators alone', async () => {
  const { lab, scan } = await withResults(['no json', 'none here', 'nor here'], {
    SONAR_FINALIZATION_ATTEMPTS: 1,
  });
  while (await lab.finalize());
  await lab.plan(scan);
  await lab.settle(scan);
  await using api = await serveApi(clone, objects);
  const first = await api.ask('GET', `/v1/poison?scan=${scan.scan_id}&limit=2`, { as: 'viewer' });
  expect(poisonListSchema.parse(first.body).items).toHaveLength(2);
  const rest = await api.ask('GET', `/v1/poison?limit=2&after=${first.body.next}`);
  expect([rest.body.items.length, rest.body.next]).toEqual([1, null]);
  const [item] = first.body.items;
  expect(await api.ask('GET', `/v1/poison/${item.id}`, { as: 'viewer' })).toMatchObject({
    status: 200,
    body: {
      kind: 'finalization',
      error: expect.stringContaining('none of 1 records of found.jsonl could be read'),
      sample: { file: 'found.jsonl', text: expect.stringMatching(/json|here/) },
      taskStatus: 'Failed',
      worker: 'w1',
    },
  });
  expect(await api.ask('POST', `/v1/poison/${item.id}/retry`, { as: 'viewer' })).toMatchObject({
    status: 403,
  });
  expect(await api.ask('POST', `/v1/poison/${item.id}/retry`, { as: 'operator' })).toMatchObject({
    status: 200,
    body: { repaired: 1, scan: { status: 'Running', generation: 2 } },
  });
  expect(
    await api.ask('POST', '/v1/poison/retry', { as: 'operator', body: { scan: 'latest' } }),
  ).toMatchObject({
    status: 200,
    body: { repaired: 2, scan: { generation: 2 } },
  });
  expect(api.temporal.calls).toEqual(Array(2).fill(`wakeOrStartScan ${scan.scan_id}`));
  expect((await api.ask('GET', '/v1/poison')).body.items).toEqual([]);
});

test('what is not poisoned, or not any more, is named', async () => {
  await using api = await serveApi(clone, objects);
  for (const id of ['x', newId()]) {
    expect(await api.ask('GET', `/v1/poison/${id}`)).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    });
    expect(await api.ask('POST', `/v1/poison/${id}/retry`)).toMatchObject({ status: 404 });
  }
  expect(await api.ask('POST', '/v1/poison/retry', { body: { scan: newId() } })).toMatchObject({
    status: 404,
  });
  expect(await api.ask('GET', '/v1/poison?after=bm90LW9uZQ')).toMatchObject({ status: 422 });
});
