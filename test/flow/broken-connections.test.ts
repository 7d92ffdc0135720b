// A connection that PostgreSQL ends is a fault of the work that had it, of nothing else.
import type { Db } from '#sonar/db/pool.ts';
import { pause } from '#sonar/platform/wait.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();

const backendOf = async (db: Db): Promise<number> => {
  const [row] = await db.rows<{ pid: number }>(query`select pg_backend_pid() as pid`);
  return row?.pid ?? 0;
};

/** Ends the server's side of a connection; resolves when it is gone. */
async function endBackend(pid: number): Promise<void> {
  await clone.database.rows(query`select pg_terminate_backend(${pid}::integer)`);
  for (;;) {
    const [row] = await clone.database.rows<{ gone: boolean }>(
      query`select not exists (select from pg_stat_activity where pid = ${pid}::integer) as gone`,
    );
    await pause(5);
    if (row?.gone) return;
  }
}

async function untilAsleep(pid: number): Promise<void> {
  for (;;) {
    const [row] = await clone.database.rows<{ asleep: boolean }>(
      query`select exists (select from pg_stat_activity where pid = ${pid}::integer and wait_event = 'PgSleep') as asleep`,
    );
    if (row?.asleep) return;
    await pause(5);
  }
}

const one = query`select 1 as one`;

test.each<[string, (tx: Db, pid: number) => Promise<unknown>]>([
  [
    'between two statements',
    async (tx, pid) => {
      await endBackend(pid);
      await tx.rows(one);
    },
  ],
  ['before its commit', (_tx, pid) => endBackend(pid)],
  [
    'during a statement',
    async (tx, pid) => {
      const sleeping = tx.rows(query`select pg_sleep(50)`);
      await Promise.all([sleeping, untilAsleep(pid).then(() => endBackend(pid))]);
    },
  ],
])(
  'a transaction whose connection ends %s is rejected as unreachable, and the pool goes on',
  async (_when, work) => {
    const pool = clone.open(1);
    await expect(pool.transaction(async (tx) => work(tx, await backendOf(tx)))).rejects.toMatchObject({
      code: 'unreachable',
    });
    expect(await pool.transaction((tx) => tx.rows(one))).toEqual([{ one: 1 }]);
  },
);

test('work that fails by itself on an ended connection keeps its own fault', async () => {
  const pool = clone.open(1);
  const failing = pool.transaction(async (tx) => {
    await endBackend(await backendOf(tx));
    throw new RangeError('its own');
  });
  await expect(failing).rejects.toThrow(new RangeError('its own'));
  expect(await pool.rows(one)).toEqual([{ one: 1 }]);
});

test('a savepoint on an ended connection is rejected as unreachable', async () => {
  const pool = clone.open(1);
  const failing = pool.transaction(async (tx) => {
    await tx.savepoint(async () => {
      await endBackend(await backendOf(tx));
      await tx.rows(one);
    });
  });
  await expect(failing).rejects.toMatchObject({ code: 'unreachable' });
  expect(await pool.rows(one)).toEqual([{ one: 1 }]);
});

test('an idle connection that ends is replaced', async () => {
  const pool = clone.open(1);
  const before = await backendOf(pool);
  await endBackend(before);
  expect(await backendOf(pool)).not.toBe(before);
});
