// The oracle's own connection: past every link, but not past a machine that is busy or a database that was just killed.
import { type Database, openDatabase } from '#sonar/db/pool.ts';
import type { Statement } from '#sonar/db/sql.ts';
import { isSonarError } from '#sonar/platform/errors.ts';
import { pause } from '#sonar/platform/wait.ts';

export interface PatientDatabase {
  /** Asks again while the database does not answer, for a bounded time. */
  rows<Row>(statement: Statement): Promise<Row[]>;
  close(): Promise<void>;
}

const patienceMs = 120_000;
const againMs = 1_000;

export function openPatientDatabase(url: string): PatientDatabase {
  const database: Database = openDatabase({ url, applicationName: 'torture', maxConnections: 3 });
  return {
    async rows<Row>(statement: Statement): Promise<Row[]> {
      const until = performance.now() + patienceMs;
      for (;;) {
        try {
          return await database.rows<Row>(statement);
        } catch (error) {
          if (!isSonarError(error, 'unreachable') || performance.now() > until) throw error;
          await pause(againMs);
        }
      }
    },
    close: () => database.close(),
  };
}
