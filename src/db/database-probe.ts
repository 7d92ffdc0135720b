import { openDatabase } from './pool.ts';
import { sql } from './sql.ts';

/** Asks a database for its server's version, on a connection of its own. Throws when it does not answer. */
export async function probeDatabase(url: string): Promise<string> {
  const database = openDatabase({
    url,
    applicationName: 'sonar-probe',
    maxConnections: 1,
    statementTimeoutMs: 5_000,
  });
  try {
    const rows = await database.rows<{ version: string }>(
      sql('database.version')`select current_setting('server_version') as version`,
    );
    return rows[0]?.version ?? 'unknown';
  } finally {
    await database.close();
  }
}
