// A whole Sonar on this machine for one purpose: services, schema, tokens, all control roles in one process, and
// workers, all watched over by the stack and gone with it.
import { join } from 'node:path';
import { type ApiClient, createApiClient } from '#sonar/cli/api-client.ts';
import { chooseApiPort } from '#sonar/cli/api-port.ts';
import { progressLine } from '#sonar/cli/up-lines.ts';
import { migrate } from '#sonar/db/migrator.ts';
import { createLocalToken } from '#sonar/roles/bootstrap.ts';
import { type Stack, startStack } from '#sonar/stack/stack.ts';

export const checkout = join(import.meta.dirname, '..');
const entry = join(checkout, 'src', 'main.ts');
const host = '127.0.0.1';

export interface LocalWorker {
  name: string;
  /** With commas. */
  tags: string;
  slots: string;
}

export interface LocalSonar {
  stack: Stack;
  client: ApiClient;
  apiUrl: string;
  stop(): Promise<void>;
}

export interface LocalSonarOptions {
  dataDir: string;
  temporalUi?: boolean;
  workers: readonly LocalWorker[];
  /** PATH of the workers' commands; this process's own unless given. */
  workerPath?: string;
  signal: AbortSignal;
  say: (line: string) => void;
}

/** Returns when the api answers and every worker has pulsed. What it started is stopped when it throws. */
export async function startLocalSonar(options: LocalSonarOptions): Promise<LocalSonar> {
  const { dataDir, say, signal } = options;
  const stack = await startStack({
    dataDir,
    environment: process.env,
    signal,
    ...(options.temporalUi === undefined ? {} : { temporalUi: options.temporalUi }),
    onProgress: (event) => say(progressLine(event)),
  });
  try {
    const { client, apiUrl, workerToken } = await startRoles(stack, options);
    await Promise.all(
      options.workers.map((worker) => startWorker(stack, options, { worker, client, apiUrl, workerToken })),
    );
    return { stack, client, apiUrl, stop: () => stack.stop() };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

async function startRoles(stack: Stack, { say, signal }: LocalSonarOptions) {
  await migrate(stack.env.SONAR_DATABASE_URL);
  const [token, workerToken] = await Promise.all([
    createLocalToken(stack.env.SONAR_DATABASE_URL, 'admin'),
    createLocalToken(stack.env.SONAR_DATABASE_URL, 'worker'),
  ]);
  const port = await chooseApiPort(undefined);
  const apiUrl = `http://${host}:${port}`;
  say(progressLine({ service: 'roles', state: 'starting' }));
  const since = performance.now();
  await launch(
    stack,
    'roles',
    ['serve', '--role', 'all', '--host', host, '--port', String(port)],
    { ...stack.env },
    async () => {
      const answer = await fetch(`${apiUrl}/health/ready`, { signal: AbortSignal.timeout(2_000) });
      await answer.body?.cancel();
      return answer.ok;
    },
  );
  const seconds = (performance.now() - since) / 1000;
  say(
    progressLine({
      service: 'roles',
      state: 'ready',
      seconds,
      detail: 'api, reconciler, finalizer, publisher',
    }),
  );
  const source = 'this program';
  const client = createApiClient({ apiUrl, apiUrlSource: source, token, tokenSource: source }, { signal });
  return { client, apiUrl, workerToken };
}

async function startWorker(
  stack: Stack,
  options: LocalSonarOptions,
  {
    worker,
    client,
    apiUrl,
    workerToken,
  }: { worker: LocalWorker; client: ApiClient; apiUrl: string; workerToken: string },
): Promise<void> {
  const words = ['worker', 'start', '--name', worker.name, '--tags', worker.tags, '--slots', worker.slots];
  const environment = {
    PATH: options.workerPath ?? process.env.PATH ?? '',
    SONAR_API_URL: apiUrl,
    SONAR_TOKEN: workerToken,
    SONAR_AMQP_URL: stack.env.SONAR_AMQP_URL,
  };
  await launch(
    stack,
    worker.name,
    [...words, '--dir', join(options.dataDir, 'workers')],
    environment,
    async () => {
      const { items } = await client.workers.take({}, 100);
      return items.some(
        (known) => known.name === worker.name && known.state === 'alive' && known.lastPulseAt !== null,
      );
    },
  );
  options.say(progressLine({ service: worker.name, state: 'ready', detail: `tags ${worker.tags}` }));
}

async function launch(
  stack: Stack,
  name: string,
  words: readonly string[],
  environment: Record<string, string>,
  ready: () => Promise<boolean>,
): Promise<void> {
  await stack.supervise({
    name,
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', entry, ...words],
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...environment },
    ready,
  });
}
