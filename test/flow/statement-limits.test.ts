// A statement that takes too long is not an outage: the same again may take as long, so whoever counts tries counts it.
import { type Database, openDatabase } from '#sonar/db/pool.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { page, unreadResults } from '../fixtures/unread-results.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const { withResults, rows, makeDue } = unreadResults(clone, objects);

/** The file's database, by connections that end a statement after so long. */
async function withLimit<Result>(
  statementTimeoutMs: number,
  work: (limited: Database) => Promise<Result>,
): Promise<Result> {
  const limited = openDatabase({
    url: clone.url,
    applicationName: 'limited',
    maxConnections: 2,
    statementTimeoutMs,
  });
  try {
    return await work(limited);
  } finally {
    await limited.close();
  }
}

test('a statement that runs into its limit is timed out, not unreachable, and the pool goes on', async () => {
  await withLimit(100, async (limited) => {
    const slow = query`select pg_sleep(50)`;
    await expect(limited.rows(slow)).rejects.toMatchObject({ code: 'timed_out' });
    await expect(limited.transaction((tx) => tx.rows(slow))).rejects.toMatchObject({ code: 'timed_out' });
    expect(await limited.transaction((tx) => tx.rows(query`select 1 as one`))).toEqual([{ one: 1 }]);
  });
});

test('a statement that somebody ends by hand is unreachable: it may go through', async () => {
  const [pool, observer] = [clone.open(1), clone.open(1)];
  const [backend] = await pool.rows<{ pid: number }>(query`select pg_backend_pid() as pid`);
  const sleeping = pool.rows(query`select pg_sleep(50)`);
  sleeping.catch(() => undefined);
  for (let ended = false; !ended; ) {
    const [row] = await observer.rows<{ ended: boolean }>(query`
      select coalesce(bool_or(pg_cancel_backend(pid)), false) as ended from pg_stat_activity
      where pid = ${backend?.pid}::integer and wait_event = 'PgSleep'`);
    ended = row?.ended ?? false;
  }
  await expect(sleeping).rejects.toMatchObject({ code: 'unreachable' });
});

test('a result whose effects run into the limit of a statement is poisoned like any other that cannot be read', async () => {
  const { lab, scan } = await withResults([page('a')], { SONAR_FINALIZATION_ATTEMPTS: 2 });
  await withLimit(1_000, async (limited) => {
    const brief = lab.with({ database: limited });
    await clone.open(1).transaction(async (tx) => {
      await tx.execute(query`lock table sonar.observation in exclusive mode`);
      await brief.finalize();
      expect(await rows()).toMatchObject([{ status: 'due', attempts: 1, claim_token: null }]);
      await makeDue();
      await brief.finalize();
    });
  });
  expect(await rows()).toMatchObject([
    {
      status: 'poisoned',
      attempts: 2,
      error: expect.stringContaining('ended a statement at its time limit') as string,
    },
  ]);
  await lab.plan(scan);
  expect(await lab.settle(scan)).toBe('CompletedWithErrors');
});
