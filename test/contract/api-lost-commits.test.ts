// PostgreSQL has committed and its answer is lost: the worker hears that nobody knows, asks again, and nothing is done
// twice.
import { openDatabase } from '#sonar/db/pool.ts';
import { newId } from '#sonar/platform/ids.ts';
import { calledAttempt, expectRefusal } from '../fixtures/called-attempt.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { identity, resultOf } from '../fixtures/laboratory.ts';
import { loseCommits } from '../fixtures/lost-commits.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { credentialOf } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

/** The file's database, by way of a relay. */
async function lossyDatabase() {
  const relay = await loseCommits(clone.url);
  const database = openDatabase({ url: relay.url, applicationName: 'lossy', maxConnections: 4 });
  return {
    relay,
    clone: {
      url: relay.url,
      database,
      open: (connections?: number) => clone.open(connections),
      empty: () => clone.empty(),
      drop: () => clone.drop(),
    },
    async [Symbol.asyncDispose]() {
      await database.close();
      await relay[Symbol.asyncDispose]();
    },
  };
}

const committed = () =>
  clone.database.rows(query`
    select (select count(*) from sonar.result) as results, (select count(*) from sonar.attempt where end_reason = 'result') as ended,
           (select count(*) from sonar.task where status = 'Completed') as completed`);

test('a result whose commit is not answered is a 503, and the same again a duplicate', async () => {
  await using lossy = await lossyDatabase();
  await using work = await calledAttempt(lossy.clone, objects);
  await work.start();
  const body = JSON.stringify(resultOf(work.attempt, work.worker));
  const send = () => work.api.send(work.urlOf('result'), body, { secret: work.secret });
  lossy.relay.lose('commit', 1);
  expectRefusal(await send(), 503, 'unreachable');
  expect(lossy.relay.lost()).toBe(1);
  expect(await committed()).toEqual([{ results: 1, ended: 1, completed: 1 }]);
  expect((await send()).body.disposition).toBe('duplicate');
  expect(await committed()).toEqual([{ results: 1, ended: 1, completed: 1 }]);
});

test('of results that are committed together each is accepted or a 503, never a duplicate of itself, and counts once', async () => {
  await using lossy = await lossyDatabase();
  await using work = await calledAttempt(lossy.clone, objects, 12);
  for (const attempt of work.attempts) await work.lab.start(attempt, work.worker);
  const sendAll = () =>
    Promise.all(
      work.attempts.map((attempt) =>
        work.api.send(
          `/v1/attempts/${attempt.attempt_id}/result`,
          JSON.stringify(resultOf(attempt, work.worker)),
          { secret: credentialOf(attempt.attempt_id) },
        ),
      ),
    );
  // The first of each lane goes alone; what comes meanwhile makes a group.
  lossy.relay.lose('commit', 3);
  const first = await sendAll();
  expect(lossy.relay.lost()).toBeGreaterThan(0);
  const answers = new Set(first.map(({ status, body }) => `${status} ${body.disposition ?? body.code}`));
  expect([...answers].filter((answer) => !['200 accepted', '503 unreachable'].includes(answer))).toEqual([]);
  expect(answers).toContain('503 unreachable');
  const again = await sendAll();
  expect(again.map(({ body }) => body.disposition as string)).toEqual(work.attempts.map(() => 'duplicate'));
  expect(await committed()).toEqual([{ results: 12, ended: 12, completed: 12 }]);
});

test('`started` whose commit is not answered runs when the same delivery asks again, and only then', async () => {
  await using lossy = await lossyDatabase();
  await using work = await calledAttempt(lossy.clone, objects);
  const send = (body: string) => work.api.send(work.urlOf('started'), body, { secret: work.secret });
  lossy.relay.lose('started_pulse_sequence', 1);
  expectRefusal(await send(work.startedBody), 503, 'unreachable');
  const other = { ...identity(work.attempt, work.worker), deliveryId: newId(), pulseSequence: 1 };
  expect((await send(JSON.stringify(other))).body.disposition).toBe('skip');
  expect((await send(work.startedBody)).body.disposition).toBe('run');
});
