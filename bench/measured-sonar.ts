// A Sonar whose roles are processes of their own, so that each one's memory and CPU time can be told apart.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ApiClient, createApiClient } from '#sonar/cli/api-client.ts';
import { chooseApiPort } from '#sonar/cli/api-port.ts';
import { progressLine } from '#sonar/cli/up-lines.ts';
import { migrate } from '#sonar/db/migrator.ts';
import { createLocalToken } from '#sonar/roles/bootstrap.ts';
import { type Stack, type SupervisedProcess, startStack } from '#sonar/stack/stack.ts';

const entry = join(import.meta.dirname, '..', 'src', 'main.ts');

export interface MeasuredSonar {
  stack: Stack;
  client: ApiClient;
  /** For a program that is to call the api. */
  connection: { SONAR_API_URL: string; SONAR_TOKEN: string };
  usage(): Record<string, ProcessUsage>;
}

interface ProcessUsage {
  /** The most that it has held so far. */
  residentMaxMb: number;
  cpuSeconds: number;
}

/** What is started goes with the stack: stop that. */
export async function startMeasuredSonar(options: {
  dataDir: string;
  roles: readonly string[];
  workers: readonly { name: string; tags: string; slots: number }[];
  settings?: Record<string, string>;
  signal: AbortSignal;
}): Promise<MeasuredSonar> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const stack = await startStack({
    dataDir: options.dataDir,
    environment: process.env,
    temporalUi: false,
    signal: options.signal,
    onProgress: (event) => say(progressLine(event)),
  });
  const processes: SupervisedProcess[] = [];
  const launch = async (
    name: string,
    words: readonly string[],
    env: Record<string, string>,
    ready?: () => Promise<boolean>,
  ): Promise<void> => {
    const { PATH = '', HOME = '' } = process.env;
    const args = ['--disable-warning=ExperimentalWarning', entry, ...words];
    const environment = { PATH, HOME, ...env };
    processes.push(
      await stack.supervise({
        name,
        command: process.execPath,
        args,
        env: environment,
        ...(ready === undefined ? {} : { ready }),
      }),
    );
  };
  try {
    await migrate(stack.env.SONAR_DATABASE_URL);
    const token = await createLocalToken(stack.env.SONAR_DATABASE_URL, 'admin');
    const workerToken = await createLocalToken(stack.env.SONAR_DATABASE_URL, 'worker');
    const port = String(await chooseApiPort(undefined));
    const connection = { SONAR_API_URL: `http://127.0.0.1:${port}`, SONAR_TOKEN: token };
    const isReady = async (): Promise<boolean> => {
      const answer = await fetch(`${connection.SONAR_API_URL}/health/ready`, {
        signal: AbortSignal.timeout(2_000),
      });
      await answer.body?.cancel();
      return answer.ok;
    };
    for (const role of options.roles)
      await launch(
        role,
        ['serve', '--role', role, '--host', '127.0.0.1', '--port', port],
        { ...stack.env, ...options.settings },
        role === 'api' ? isReady : undefined,
      );
    const source = 'the bench';
    const client = createApiClient(
      { apiUrl: connection.SONAR_API_URL, apiUrlSource: source, token, tokenSource: source },
      { signal: options.signal },
    );
    for (const { name, tags, slots } of options.workers)
      await launch(
        name,
        ['worker', 'start', '--name', name, '--tags', tags, '--slots', String(slots)].concat([
          '--dir',
          join(options.dataDir, 'workers'),
        ]),
        { ...connection, SONAR_TOKEN: workerToken, SONAR_AMQP_URL: stack.env.SONAR_AMQP_URL },
        async () => {
          const { items } = await client.workers.take({}, 100);
          return items.some((worker) => worker.name === name && worker.state === 'alive');
        },
      );
    const usage = (): Record<string, ProcessUsage> =>
      Object.fromEntries(
        processes.flatMap(({ name, pid }) => (pid === undefined ? [] : [[name, usageOf(pid)]])),
      );
    return { stack, client, connection, usage };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

/** Linux tells of a process what it has used. */
function usageOf(pid: number): ProcessUsage {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const ticks = Number(fields[11]) + Number(fields[12]);
  return {
    residentMaxMb: Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024),
    cpuSeconds: Math.round(ticks) / 100,
  };
}
