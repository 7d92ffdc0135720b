import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { probeDatabase } from '#sonar/db/database-probe.ts';
import { passable } from './data-directory.ts';
import { chooseDatabaseUser, type DatabaseUser } from './database-user.ts';
import type { Installation } from './installation.ts';
import { loopback } from './port-memory.ts';
import { dataVersion, type PostgresFiles } from './postgres-installation.ts';
import { baseEnvironment } from './process-supervision.ts';
import { runProgram } from './run-program.ts';
import type { ServiceContext, StartedService } from './service-contract.ts';
import { StackError } from './stack-error.ts';

const databaseName = 'sonar';
const superuser = 'sonar';
/** All roles of a stack and a jest run with a cloned database a file fit in. */
const maxConnections = 200;
const unfinished = 'data.new-';

/** Where PostgreSQL's files are in its folder. */
export function postgresData(directory: string): string {
  return join(directory, 'data');
}

/** Starts PostgreSQL on its data, which is made first when there is none, with the database `sonar` in it. */
export async function startPostgres(
  context: ServiceContext,
  installation: Installation<PostgresFiles>,
): Promise<StartedService> {
  const data = postgresData(context.directory);
  const { files } = installation;
  chmodSync(context.directory, passable);
  const user = chooseDatabaseUser(data, [files.postgres, context.directory]);
  await makeData(context, files, user, data);
  const made = dataVersion(data);
  if (made !== installation.version.split('.')[0]) {
    throw new StackError(
      'data_unusable',
      `${data} was made by PostgreSQL ${made}, and only ${installation.version} is here`,
      [`install postgres ${made} so that it is on PATH`, `give the data up: rm -r ${data}`],
    );
  }
  const port = context.ports.postgres;
  const settings = {
    port,
    listen_addresses: loopback,
    unix_socket_directories: '',
    max_connections: maxConnections,
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_line_prefix: '%m [%p] %q%a ',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const { databasePassword } = context.secrets;
  const url = `postgres://${superuser}:${databasePassword}@${loopback}:${port}/${databaseName}`;
  const process = await context.launch({
    name: 'postgres',
    ...user.as(files.postgres, ['-D', data, ...options]),
    env: {},
    cwd: context.directory,
    log: context.log,
    stopSignal: 'SIGINT', // fast shutdown: ends sessions, writes a checkpoint
    graceMs: 10_000,
    ready: async () => {
      await probeDatabase(url);
    },
    readyWithinMs: 60_000,
  });
  return { address: `${loopback}:${port}/${databaseName}`, env: { SONAR_DATABASE_URL: url }, process };
}

/** In a folder of its own first: a start that was killed half way leaves no data that looks whole. */
async function makeData(
  context: ServiceContext,
  files: PostgresFiles,
  user: DatabaseUser,
  data: string,
): Promise<void> {
  if (existsSync(data)) return;
  for (const name of readdirSync(context.directory)) {
    if (name.startsWith(unfinished)) rmSync(join(context.directory, name), { recursive: true });
  }
  const making = join(context.directory, `${unfinished}${process.pid}`);
  mkdirSync(making, { mode: 0o700 });
  user.give(making);
  const password = join(context.directory, 'initial-password');
  writeFileSync(password, context.secrets.databasePassword, { mode: 0o600 });
  user.give(password);
  const run = (program: string, programArgs: readonly string[], input?: string): Promise<string> => {
    const { signal, directory } = context;
    return runProgram({
      ...user.as(program, programArgs),
      cwd: directory,
      env: baseEnvironment(),
      signal,
      faultCode: 'service_failed',
      ...(input && { input }),
    });
  };
  try {
    await run(files.initdb, [
      '-D',
      making,
      '-U',
      superuser,
      `--pwfile=${password}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--no-locale',
      '--no-sync', // a machine that dies now loses an empty database; the data folder is not in place yet
    ]);
    await run(files.postgres, ['--single', '-D', making, 'postgres'], `CREATE DATABASE ${databaseName};\n`);
  } finally {
    rmSync(password, { force: true });
  }
  renameSync(making, data);
}
