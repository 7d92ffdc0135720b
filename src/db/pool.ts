// The only importer of pg: pool, transactions, types.
import pg from 'pg';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import type { Statement } from './sql.ts';

/** Where a statement runs: the pool (its own transaction) or a transaction. Always the first argument. */
export interface Db {
  /** @returns the rows, as the statement's caller declares them. */
  rows<Row>(statement: Statement): Promise<Row[]>;
  /** @returns how many rows were changed. */
  execute(statement: Statement): Promise<number>;
}

export interface Transaction extends Db {
  /** What `work` did is undone when it throws, and the transaction can go on. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result>;
}

export interface Database extends Db {
  /**
   * READ COMMITTED, always: guards read the lease in a statement after its lock. Rolls back on a throw.
   * A fault of COMMIT itself leaves the outcome unknown and is thrown as `unreachable`.
   */
  transaction<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result>;
  /** @throws SonarError `unreachable` when the database does not answer. */
  check(): Promise<void>;
  /** Runs text that is no statement of a family: migrations and tests. */
  script(text: string): Promise<void>;
  close(): Promise<void>;
}

const { types } = pg;
const int8 = 20;
const timestamptz = 1184;

// No bigint in JSON or payloads: past 2^53 it is a fault, not a rounding.
function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new SonarError('internal', `int8 ${text} is past 2^53`);
  return value;
}

const typeParsers = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === int8) return parseInt8;
    // ISO 8601 UTC at every edge, so times are texts from here on.
    if (oid === timestamptz) return (text: string) => new Date(text).toISOString();
    return types.getTypeParser(oid, format) as (text: string) => unknown;
  },
};

export interface DatabaseOptions {
  url: string;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  maxConnections: number;
  /** Ends a statement that hangs, on the server's side; it is thrown as `timed_out`. */
  statementTimeoutMs?: number;
  onError?: (error: unknown) => void;
}

/** Opens a pool; connections are made when they are needed, so a wrong address shows at first use. */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.maxConnections,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 30_000,
    statement_timeout: options.statementTimeoutMs ?? 30_000,
    idle_in_transaction_session_timeout: 15_000,
    // Every hot statement has its index. With few scans the planner expects an early match and reads a whole
    // table where there is none; compiling plans of short statements only costs.
    options: '-c enable_seqscan=off -c jit=off',
    types: typeParsers,
  });
  // An idle connection that breaks is replaced at the next use; unheard, it would end the process.
  pool.on('error', (error) => options.onError?.(error));
  return {
    ...statementsOn(pool),
    transaction: (work) => transaction(pool, work),
    script: async (text) => {
      await pool.query(text).catch(rethrow);
    },
    check: async () => {
      await pool.query('select 1').catch(rethrow);
    },
    close: () => pool.end(),
  };
}

/** Rows are what the statement's caller says they are; a test describes every statement against the schema. */
const statementsOn = (target: pg.Pool | pg.PoolClient): Db => ({
  rows: async <Row>(statement: Statement) => (await run(target, statement)).rows as Row[],
  execute: async (statement) => (await run(target, statement)).rowCount ?? 0,
});

const transactionOn = (client: pg.PoolClient): Transaction => ({
  ...statementsOn(client),
  async savepoint(work) {
    await client.query('savepoint part').catch(rethrow);
    try {
      const result = await work();
      await client.query('release savepoint part').catch(rethrow);
      return result;
    } catch (error) {
      await client.query('rollback to savepoint part').catch(rethrow);
      throw error;
    }
  },
});

async function transaction<Result>(
  pool: pg.Pool,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect().catch(rethrow);
  let broken = false;
  // The pool listens to idle clients only: unheard, a connection that breaks here would end the process.
  const onError = (): void => {
    broken = true;
  };
  client.on('error', onError);
  try {
    await client.query('begin').catch(rethrow);
    const result = await work(transactionOn(client));
    await client.query('commit').catch((error: unknown) => {
      broken = true;
      return rethrow(error);
    });
    return result;
  } catch (error) {
    if (!broken)
      await client.query('rollback').catch(() => {
        broken = true;
      });
    throw error;
  } finally {
    client.removeListener('error', onError);
    client.release(broken);
  }
}

function run(target: pg.Pool | pg.PoolClient, statement: Statement): Promise<pg.QueryResult> {
  return target
    .query({ name: statement.name, text: statement.text, values: statement.values as unknown[] })
    .catch(rethrow);
}

const canceled = '57014';
const unreachableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  '57P01',
  '57P02',
  '57P03',
  '53300',
  // Ended while it did nothing, by hand, or to resolve a deadlock: the same again may go through.
  '25P03',
  canceled,
  '40P01',
]);

// By hand is the only other way to it, and said in English unless the server was set up otherwise.
const isTimeLimit = (error: unknown): boolean =>
  (error as { code?: string }).code === canceled && !/user request/i.test(messageOf(error));

function rethrow(error: unknown): never {
  // No outage: what took too long may take as long the next time, and whoever counts tries has to count it.
  if (isTimeLimit(error))
    throw new SonarError('timed_out', `PostgreSQL ended a statement at its time limit: ${messageOf(error)}`, {
      cause: error,
    });
  const code = (error as { code?: string }).code;
  const lost = code
    ? unreachableCodes.has(code) || code.startsWith('08')
    : /terminated|timeout|ended|not queryable/i.test(messageOf(error));
  if (lost)
    throw new SonarError(
      'unreachable',
      `PostgreSQL cannot be reached: ${messageOf(error)}; start it, or correct SONAR_DATABASE_URL`,
      {
        cause: error,
      },
    );
  throw error;
}
