import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Stack } from '#sonar/stack/stack.ts';
import { apiHost, chooseApiPort } from '../api-port.ts';
import {
  connectionFileName,
  defaultDataDir,
  readConnectionFile,
  writeConnectionFile,
} from '../connection-file.ts';
import { exitCodes } from '../exit-codes.ts';
import { type LongRunning, stayUntilStopped } from '../long-running.ts';
import { writePrivateText } from '../private-file.ts';
import type { Run, Session } from '../session.ts';
import { progressLine, type UpReport, upLines } from '../up-lines.ts';

interface UpOptions {
  data: string;
  /** False by `--no-roles`. */
  roles: boolean;
}

const healthWithinMs = 2_000;

export function addUpCommand(program: Command, run: Run): void {
  program
    .command('up')
    .description('bring up a whole Sonar on this machine, until Ctrl-C')
    .option('--data <folder>', 'where everything of it is kept', defaultDataDir)
    .option('--no-roles', 'only the services, for roles that are started by hand')
    .action((options: UpOptions) =>
      run((session) => stayUntilStopped(session, (signal) => bringUp(session, options, signal))),
    );
}

/** Services, schema, tokens, roles; then tells where everything is. Stops what it started when it fails. */
async function bringUp(session: Session, options: UpOptions, signal: AbortSignal): Promise<LongRunning> {
  const { environment, workingDirectory } = session.surroundings;
  const dataDir = resolve(workingDirectory, options.data);
  const tell = (line: string): void => {
    if (!session.json) session.say(line);
  };
  const { startStack } = await import('#sonar/stack/stack.ts');
  const stack = await startStack({
    dataDir,
    environment,
    signal,
    onProgress: (event) => tell(progressLine(event)),
  });
  // Ends a start of roles that is under way; the same stop is waited for below.
  const stopEarly = (): void => void stack.stop().catch(() => undefined);
  signal.addEventListener('abort', stopEarly);
  try {
    const report = await openForUse(session, stack, dataDir, options.roles, tell, signal);
    session.answer(report, upLines);
  } catch (error) {
    await stack.stop();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', stopEarly);
  }
  const done = Promise.withResolvers<number>();
  return {
    done: done.promise,
    async stop() {
      await stack.stop();
      tell('everything is stopped; the data stays');
      done.resolve(exitCodes.ok);
    },
  };
}

async function openForUse(
  session: Session,
  stack: Stack,
  dataDir: string,
  withRoles: boolean,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<UpReport> {
  const [{ migrate }, { createLocalToken }] = await Promise.all([
    import('#sonar/db/migrator.ts'),
    import('#sonar/roles/bootstrap.ts'),
  ]);
  const databaseUrl = stack.env.SONAR_DATABASE_URL;
  const { applied } = await migrate(databaseUrl);
  tell(
    progressLine({
      service: 'schema',
      state: 'ready',
      detail: applied.length === 0 ? 'current' : `applied ${applied.join(', ')}`,
    }),
  );
  signal.throwIfAborted();
  const connectionFile = join(dataDir, connectionFileName);
  const port = await chooseApiPort(rememberedUrl(connectionFile));
  const apiUrl = `http://${apiHost}:${port}`;
  if (withRoles) await superviseRoles(session, stack, port, tell);
  signal.throwIfAborted();
  writeConnectionFile(connectionFile, {
    apiUrl,
    token: await createLocalToken(databaseUrl, 'admin'),
    worker: { token: await createLocalToken(databaseUrl, 'worker'), amqpUrl: stack.env.SONAR_AMQP_URL },
  });
  const environmentFile = join(dataDir, 'stack.env');
  writePrivateText(environmentFile, shellAssignments(stack.env));
  return {
    apiUrl,
    temporalUiUrl: stack.temporalUiUrl ?? null,
    roles: withRoles,
    services: stack.services.map(({ name, address, external, log }) => ({
      name,
      address,
      external,
      log: log ?? null,
    })),
    connectionFile,
    environmentFile,
    standardPlace: dataDir === resolve(session.surroundings.workingDirectory, defaultDataDir),
  };
}

/** A file that cannot be read is written anew; only the port of the last start is lost with it. */
function rememberedUrl(connectionFile: string): string | undefined {
  try {
    return readConnectionFile(connectionFile)?.apiUrl;
  } catch {
    return undefined;
  }
}

async function superviseRoles(
  session: Session,
  stack: Stack,
  port: number,
  tell: (line: string) => void,
): Promise<void> {
  const { environment, entry } = session.surroundings;
  const startedAt = performance.now();
  tell(progressLine({ service: 'roles', state: 'starting' }));
  const roles = await stack.supervise({
    name: 'roles',
    command: process.execPath,
    args: [...process.execArgv, entry, 'serve', '--role', 'all', '--host', apiHost, '--port', String(port)],
    env: { ...settingsOf(environment), ...stack.env },
    ready: () => isReady(`http://${apiHost}:${port}/health/ready`),
  });
  const seconds = (performance.now() - startedAt) / 1000;
  tell(progressLine({ service: 'roles', state: 'ready', seconds, detail: `log in ${roles.log}` }));
}

async function isReady(url: string): Promise<boolean> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(healthWithinMs) });
  await answer.body?.cancel();
  return answer.ok;
}

/** Settings of Sonar go on to its roles; where the services are is said by the stack. */
function settingsOf(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith('SONAR_')));
}

function shellAssignments(variables: object): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}='${String(value).replaceAll("'", `'\\''`)}'\n`)
    .join('');
}
