import type { Command } from 'commander';
import { environment as names } from '#sonar/contracts/names.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { counted } from '../figures.ts';
import type { Run, Session } from '../session.ts';

export function addMigrateCommands(program: Command, run: Run): void {
  const migrate = program
    .command('migrate')
    .description(`the schema of the database at ${names.databaseUrl}`);

  migrate
    .command('up')
    .description('bring it to the version of this build')
    .action(() =>
      run(async (session) => {
        const { migrate } = await import('#sonar/db/migrator.ts');
        const done = await withDatabase(session, migrate);
        session.answer(done, ({ applied }) =>
          applied.length === 0
            ? ['the schema is current']
            : [...applied.map((name) => `applied ${name}`), counted(applied.length, 'migration')],
        );
      }),
    );

  migrate
    .command('status')
    .description('what is applied and what is not; exit 1 when something is pending')
    .action(() =>
      run(async (session) => {
        const { migrationStatus } = await import('#sonar/db/migrator.ts');
        const status = await withDatabase(session, migrationStatus);
        session.answer(status, ({ applied, pending }) => [
          ...applied.map((name) => `applied ${name}`),
          ...pending.map((name) => `pending ${name}`),
          pending.length === 0 ? 'the schema is current' : 'bring it up with: sonar migrate up',
        ]);
        return status.pending.length === 0 ? exitCodes.ok : exitCodes.fault;
      }),
    );
}

async function withDatabase<Answer>(
  session: Session,
  work: (url: string) => Promise<Answer>,
): Promise<Answer> {
  const url = session.surroundings.environment[names.databaseUrl];
  if (!url)
    throw new SonarError(
      'configuration',
      `${names.databaseUrl} is not set: name the database, like postgres://USER@HOST:5432/sonar ("sonar up" brings one with it, already migrated)`,
    );
  try {
    return await work(url);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (typeof code !== 'string' || !/^E[A-Z_]+$/.test(code)) throw error;
    const host = URL.parse(url)?.host ?? 'its host';
    throw new SonarError(
      'unreachable',
      `no PostgreSQL at ${host} (from ${names.databaseUrl}): ${messageOf(error)}; start it, or correct the address`,
      { cause: error },
    );
  }
}
