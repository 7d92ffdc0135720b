// Forward-only migrations: migrations/0001_*.sql …, each in one transaction that inserts its row first,
// so two migrators at once serialize on that row and nothing is applied twice.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { SonarError } from '#sonar/platform/errors.ts';
import { type Db, openDatabase } from './pool.ts';
import { sql } from './sql.ts';

interface Migration {
  name: string;
  text: string;
  sha256: string;
}

const folder = fileURLToPath(new URL('../../migrations/', import.meta.url));
// Any constant will do, as long as all migrators take the same one.
const migrationLock = 7_366_514;

/** Migrations of this build, in order. */
async function knownMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name)).toSorted();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(`${folder}${name}`, 'utf8');
      return { name, text, sha256: createHash('sha256').update(text).digest('hex') };
    }),
  );
}

/**
 * Brings the database at `databaseUrl` to this build's schema.
 * @throws SonarError `schema_version` when the database is newer or an applied migration was changed.
 */
export async function migrate(databaseUrl: string): Promise<{ applied: string[] }> {
  const database = openDatabase({
    url: databaseUrl,
    applicationName: 'sonar migrate',
    maxConnections: 1,
    statementTimeoutMs: 600_000,
  });
  try {
    await database.script(
      `select pg_advisory_lock(${migrationLock});
       create schema if not exists sonar;
       create table if not exists sonar.schema_migration (
         name text primary key, sha256 text not null, applied_at timestamptz not null default clock_timestamp());`,
    );
    const known = await knownMigrations();
    const applied: string[] = [];
    for (const migration of pendingOf(known, await appliedMigrations(database))) {
      await database.script(
        `begin; insert into sonar.schema_migration (name, sha256) values ('${migration.name}', '${migration.sha256}');
         ${migration.text}
         commit;`,
      );
      applied.push(migration.name);
    }
    return { applied };
  } finally {
    await database.close();
  }
}

/** What is applied and what is not. */
export async function migrationStatus(
  databaseUrl: string,
): Promise<{ applied: string[]; pending: string[] }> {
  const database = openDatabase({ url: databaseUrl, applicationName: 'sonar migrate', maxConnections: 1 });
  try {
    const applied = await appliedMigrations(database);
    const pending = pendingOf(await knownMigrations(), applied);
    return { applied: applied.map((row) => row.name), pending: pending.map((migration) => migration.name) };
  } finally {
    await database.close();
  }
}

/** Roles call this first: they refuse a schema of another version. */
export async function assertSchemaCurrent(db: Db): Promise<void> {
  const pending = pendingOf(await knownMigrations(), await appliedMigrations(db));
  if (pending.length > 0)
    throw new SonarError(
      'schema_version',
      `the database lacks ${pending.length} migration(s), first ${pending[0]?.name}; run: sonar migrate up`,
    );
}

async function appliedMigrations(db: Db): Promise<{ name: string; sha256: string }[]> {
  const [table] = await db.rows<{ present: boolean }>(
    sql('migration.present')`select to_regclass('sonar.schema_migration') is not null as present`,
  );
  if (!table?.present) return [];
  return db.rows(sql('migration.list')`select name, sha256 from sonar.schema_migration order by name`);
}

function pendingOf(known: Migration[], applied: { name: string; sha256: string }[]): Migration[] {
  const byName = new Map(known.map((migration) => [migration.name, migration]));
  for (const row of applied) {
    const migration = byName.get(row.name);
    if (!migration)
      throw new SonarError(
        'schema_version',
        `the database has migration ${row.name}, which this build lacks; run a newer build`,
      );
    if (migration.sha256 !== row.sha256)
      throw new SonarError(
        'schema_version',
        `migration ${row.name} was changed after it was applied; restore the file`,
      );
  }
  const done = new Set(applied.map((row) => row.name));
  return known.filter((migration) => !done.has(migration.name));
}
