// What goes wrong while results are read: whose fault it was decides what becomes of them.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SonarError } from '#sonar/platform/errors.ts';
import { openObjectStore } from '#sonar/transport/object-store.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { oneStep } from '../fixtures/definition-texts.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { page, unreadResults } from '../fixtures/unread-results.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const { withResults, rows, keys, makeDue, meanwhile, expireClaims } = unreadResults(clone, objects);

test('an outage of the object store counts no attempt, however long it lasts', async () => {
  const { lab, scan } = await withResults([page('a')], { SONAR_FINALIZATION_ATTEMPTS: 2 });
  const away = meanwhile(lab, () => Promise.reject(new SonarError('unreachable', 'the store is away')));
  for (let time = 0; time < 4; time += 1) {
    await away.finalize();
    expect(await rows()).toMatchObject([
      { status: 'due', attempts: 0, error: 'the store is away', claim_token: null },
    ]);
    expect(await lab.finalize()).toBeUndefined();
    await makeDue();
  }
  await lab.finalize();
  expect(await rows()).toMatchObject([{ status: 'done', attempts: 1, error: null }]);
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Completed', finalized: true }]);
});

/** A store that answers and breaks off after the first bytes. */
async function withBreakingStore(
  breakOff: (response: ServerResponse) => unknown,
  work: (breaking: typeof objects) => Promise<void>,
): Promise<void> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-length': '5000' });
    response.write('{"url":', () => breakOff(response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const breaking = openObjectStore({
    endpoint: `http://127.0.0.1:${port}`,
    bucket: 'sonar',
    region: 'us-east-1',
    urlLifeMs: 1_000,
  });
  try {
    await work(breaking);
  } finally {
    breaking.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

test.each([
  ['closed', (response: ServerResponse) => response.destroy()],
  ['reset', (response: ServerResponse) => response.socket?.resetAndDestroy()],
])(
  'an outage in the middle of an object counts no attempt either: the connection is %s',
  async (_how, breakOff) => {
    const { lab } = await withResults([page('a')], { SONAR_FINALIZATION_ATTEMPTS: 2 });
    await withBreakingStore(breakOff, async (breaking) => {
      const away = lab.with({ objects: { ...objects, read: (key) => breaking.read(key) } });
      for (let time = 0; time < 3; time += 1) {
        await away.finalize();
        expect(await rows()).toMatchObject([
          {
            status: 'due',
            attempts: 0,
            error: expect.stringMatching(/^the object store broke off within /) as string,
          },
        ]);
        await makeDue();
      }
    });
    await lab.finalize();
    expect(await rows()).toMatchObject([{ status: 'done', attempts: 1, error: null }]);
  },
);

test('a result over which so many claimants have died is poisoned without being read', async () => {
  const { lab, scan } = await withResults([page('a'), page('b')], { SONAR_FINALIZATION_ATTEMPTS: 3 });
  await clone.database.execute(query`
    update sonar.finalization f set attempts = 3 from sonar.task t where t.task_id = f.task_id and t.item_ordinal = 0`);
  let reads = 0;
  const reading = meanwhile(lab, async () => {
    reads += 1;
  });
  await reading.finalize();
  await reading.finalize();
  expect(reads).toBe(1);
  expect(await rows()).toMatchObject([
    { status: 'poisoned', error: 'every process that read it has died or lost its claim' },
    { status: 'done' },
  ]);
  expect(await lab.tasks(scan)).toMatchObject([
    { status: 'Failed', failure_code: 'finalization_poisoned' },
    { status: 'Completed' },
  ]);
  expect(await keys()).toEqual(['http://b.example.com/']);
});

test('a file whose rows parse and of which none has its key fails, as one that does not parse', async () => {
  const { lab } = await withResults(['{"uri":"http://a/"}\n{"uri":"http://b/"}\n', page('b')]);
  await lab.finalize();
  expect(await rows()).toMatchObject([
    {
      status: 'due',
      attempts: 1,
      error: expect.stringMatching(
        /^none of 2 records of found.jsonl could be read; the first: found.jsonl: endpoint: /,
      ),
    },
    { status: 'done', records: 1 },
  ]);
});

test('each file is judged by itself: a good one does not cover for another', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(oneStep.replace('path: found.jsonl', 'path: "*.jsonl"'));
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  await lab.run(attempt!, worker, { found: { 'a.jsonl': page('a'), 'b.jsonl': 'nothing\nto see\n' } });
  await lab.finalize();
  expect(await rows()).toMatchObject([
    { status: 'due', error: expect.stringContaining('none of 2 records of b.jsonl could be read') },
  ]);
});

test('a failed command keeps its own reason when what it left cannot be read', async () => {
  const lab = openLaboratory(clone, objects, { SONAR_FINALIZATION_ATTEMPTS: 1 });
  const worker = await lab.worker();
  const scan = await lab.scan(oneStep);
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  await lab.run(
    attempt!,
    worker,
    { found: { 'found.jsonl': 'half a li' } },
    { outcome: 'failed', exitCode: 3 },
  );
  await lab.finalize();
  expect(await rows()).toMatchObject([{ status: 'poisoned' }]);
  expect(await lab.tasks(scan)).toMatchObject([
    {
      status: 'Failed',
      failure_code: 'command_failed',
      failure_message: 'the command exited with 3',
      finalized: true,
    },
  ]);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('CompletedWithErrors');
});

test('a superseded task that is read late owes nobody a child', async () => {
  const { lab, scan } = await withResults([page('a'), page('b')]);
  await clone.database.execute(query`update sonar.task set superseded_at = now() where item_ordinal = 0`);
  await lab.finalize();
  expect((await rows()).map((row) => row.status)).toEqual(['done', 'done']);
  expect((await lab.tasks(scan)).map((task) => [task.finalized, task.plan_due])).toEqual([
    [true, false],
    [true, true],
  ]);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('Completed');
});

test('a result that kills its readers is poisoned alone: its neighbours are read', async () => {
  const { lab } = await withResults([page('a'), page('kills'), page('c')], {
    SONAR_FINALIZATION_ATTEMPTS: 2,
  });
  const [file] = await clone.database.rows<{ object_key: string }>(query`
    select f.object_key from sonar.output_file f join sonar.task t using (task_id) where t.item_ordinal = 1`);
  // The process dies over the file: nothing that it meant to write afterwards is written.
  let dead = false;
  const dying = () => {
    dead = false;
    return lab.with({
      objects: {
        ...objects,
        read: (key) => {
          dead ||= key === file!.object_key;
          return objects.read(key);
        },
      },
      database: faultyDatabase(clone.database, (name) => dead && name.startsWith('finalization.')),
    });
  };
  for (let life = 0; life < 8; life += 1) {
    await dying()
      .finalize()
      .catch(() => undefined);
    await expireClaims();
  }
  expect((await rows()).map((row) => row.status)).toEqual(['done', 'poisoned', 'done']);
});
