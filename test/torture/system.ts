// The whole of Sonar under torture: a stack of its own, two of every role, four workers, and a link wherever one
// process talks to another.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ApiClient, createApiClient } from '#sonar/cli/api-client.ts';
import { chooseApiPort } from '#sonar/cli/api-port.ts';
import { migrate } from '#sonar/db/migrator.ts';
import { pause } from '#sonar/platform/wait.ts';
import { createLocalToken } from '#sonar/roles/bootstrap.ts';
import { type Stack, type StackEvent, startStack } from '#sonar/stack/stack.ts';
import { ApiPool, type CallbackRelay, openCallbackRelay } from './callback-relay.ts';
import { clockArguments, clockVariable } from './clock-file.ts';
import { type Link, openLink } from './link.ts';
import { type Member, type RoleKind, type ServiceName, signalProcess } from './members.ts';
import { openPatientDatabase, type PatientDatabase } from './patient-database.ts';
import type { Random } from './random.ts';
import { roleSettings, type WorkerPlan, workerPlans } from './settings.ts';

const checkout = join(import.meta.dirname, '..', '..');
const entry = join(checkout, 'src', 'main.ts');
const host = '127.0.0.1';
const upWithinMs = 90_000;

export interface TortureSystem {
  readonly stack: Stack;
  readonly members: readonly Member[];
  readonly client: ApiClient;
  /** The harness's own way, past every link. */
  readonly database: PatientDatabase;
  readonly workerDirectory: string;
  /** Every link of every member, and the workers' ways to the apis. */
  allLinks(): (Link | CallbackRelay)[];
  servicePid(name: ServiceName): number | undefined;
  /** Ends every disturbance of the network. */
  healLinks(): void;
  /** Ends the workers in order; whatever of theirs is left then was left behind. */
  stopWorkers(): Promise<void>;
  stop(): Promise<void>;
}

export interface SystemOptions {
  directory: string;
  random: Random;
  signal: AbortSignal;
  onEvent: (event: StackEvent) => void;
}

const serviceNames: readonly ServiceName[] = ['postgres', 'rabbitmq', 's3', 'temporal'];
const roleKinds: readonly RoleKind[] = ['api', 'reconciler', 'finalizer', 'publisher'];

/** @throws what the stack or a process throws at its start; nothing is left running then. */
export async function startSystem(options: SystemOptions): Promise<TortureSystem> {
  const stack = await startStack({
    dataDir: options.directory,
    temporalUi: false,
    signal: options.signal,
    onProgress: options.onEvent,
  });
  const closers: (() => Promise<void> | void)[] = [() => stack.stop()];
  const stop = async (): Promise<void> => {
    for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close();
  };
  try {
    return await assemble(stack, options, closers, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function assemble(
  stack: Stack,
  options: SystemOptions,
  closers: (() => Promise<void> | void)[],
  stop: () => Promise<void>,
): Promise<TortureSystem> {
  await migrate(stack.env.SONAR_DATABASE_URL);
  const adminToken = await createLocalToken(stack.env.SONAR_DATABASE_URL, 'admin');
  const workerToken = await createLocalToken(stack.env.SONAR_DATABASE_URL, 'worker');
  const apiPorts = [await chooseApiPort(undefined), await chooseApiPort(undefined)];
  const pool = new ApiPool(apiPorts);
  closers.unshift(() => pool.close());
  const relayTo = async (name: string): Promise<CallbackRelay> => {
    const relay = await openCallbackRelay(name, pool, options.random);
    closers.unshift(() => relay.close());
    return relay;
  };
  const linkTo = async (name: string, port: number): Promise<Link> => {
    const link = await openLink(name, port);
    closers.unshift(() => link.close());
    return link;
  };

  const clocks = join(options.directory, 'clocks');
  mkdirSync(clocks);
  const clockOf = (name: string): string => join(clocks, name);

  const members: Member[] = [];
  for (const kind of roleKinds)
    for (const number of [1, 2])
      members.push(
        await startRole(stack, {
          kind,
          name: `${kind}-${number}`,
          port: apiPorts[number - 1] ?? 0,
          clock: clockOf(`${kind}-${number}`),
          linkTo,
        }),
      );
  const own = await relayTo('operator>api');
  const client = createApiClient(
    {
      apiUrl: `http://${host}:${own.port}`,
      apiUrlSource: 'torture',
      token: adminToken,
      tokenSource: 'torture',
    },
    { signal: options.signal, timeoutMs: 15_000 },
  );
  await reached('the apis answer', options.signal, async () => {
    await client.scans.take({}, 1);
    return true;
  });
  for (const plan of workerPlans)
    members.push(
      await startWorker(stack, {
        plan,
        workerToken,
        directory: options.directory,
        clock: clockOf(plan.name),
        relayTo,
        linkTo,
      }),
    );
  await reached('every worker has pulsed', options.signal, async () => {
    const { items } = await client.workers.take({}, 100);
    return workerPlans.every(({ name }) =>
      items.some((worker) => worker.name === name && worker.lastPulseAt !== null),
    );
  });
  const database = openPatientDatabase(stack.env.SONAR_DATABASE_URL);
  closers.push(() => database.close());
  const allLinks = (): (Link | CallbackRelay)[] =>
    members.flatMap(({ links, relay }) => [...Object.values(links), ...(relay ? [relay] : [])]);
  return {
    stack,
    members,
    client,
    database,
    workerDirectory: join(options.directory, 'workers'),
    allLinks,
    servicePid: (name) => stack.services.find((service) => service.name === name)?.pid,
    healLinks: () => {
      for (const link of allLinks()) link.heal();
    },
    async stopWorkers() {
      const workers = members.filter(({ kind }) => kind === 'worker');
      await Promise.all(workers.map((worker) => worker.process.stop()));
    },
    async stop() {
      for (const member of members) signalProcess(member.process.pid, 'SIGCONT');
      // All at once: the stack would stop them one after the other.
      await Promise.all(members.map((member) => member.process.stop()));
      await stop();
    },
  };
}

const portsOf = (stack: Stack): Record<ServiceName, number> => ({
  postgres: Number(new URL(stack.env.SONAR_DATABASE_URL).port),
  rabbitmq: Number(new URL(stack.env.SONAR_AMQP_URL).port),
  s3: Number(new URL(stack.env.SONAR_S3_ENDPOINT).port),
  temporal: Number(stack.env.SONAR_TEMPORAL_ADDRESS.split(':').at(-1)),
});

const throughPort = (url: string, port: number): string => {
  const through = new URL(url);
  through.port = String(port);
  // A path that was not there does not appear.
  return url.endsWith('/') ? through.href : through.href.replace(/\/$/, '');
};

async function startRole(
  stack: Stack,
  role: {
    kind: RoleKind;
    name: string;
    port: number;
    clock: string;
    linkTo(name: string, port: number): Promise<Link>;
  },
): Promise<Member> {
  const ports = portsOf(stack);
  const links: Partial<Record<ServiceName, Link>> = {};
  for (const service of serviceNames) {
    if (service === 'rabbitmq' && role.kind !== 'publisher') continue;
    links[service] = await role.linkTo(`${role.name}>${service}`, ports[service]);
  }
  const port = (service: ServiceName): number => links[service]?.port ?? ports[service];
  const words = ['serve', '--role', role.kind, '--host', host];
  const process = await launch(
    stack,
    role,
    role.kind === 'api' ? [...words, '--port', String(role.port)] : words,
    {
      ...stack.env,
      ...roleSettings,
      SONAR_DATABASE_URL: throughPort(stack.env.SONAR_DATABASE_URL, port('postgres')),
      SONAR_AMQP_URL: throughPort(stack.env.SONAR_AMQP_URL, port('rabbitmq')),
      SONAR_S3_ENDPOINT: throughPort(stack.env.SONAR_S3_ENDPOINT, port('s3')),
      SONAR_TEMPORAL_ADDRESS: `${host}:${port('temporal')}`,
    },
  );
  return { name: role.name, kind: role.kind, process, links, clock: role.clock, relay: undefined };
}

async function startWorker(
  stack: Stack,
  worker: {
    plan: WorkerPlan;
    workerToken: string;
    directory: string;
    clock: string;
    relayTo(name: string): Promise<CallbackRelay>;
    linkTo(name: string, port: number): Promise<Link>;
  },
): Promise<Member> {
  const { name, tags, slots } = worker.plan;
  const relay = await worker.relayTo(`${name}>api`);
  const broker = await worker.linkTo(`${name}>rabbitmq`, portsOf(stack).rabbitmq);
  const words = ['worker', 'start', '--name', name, '--tags', tags.join(',')];
  const process = await launch(
    stack,
    { name, clock: worker.clock },
    [...words, '--slots', String(slots), '--dir', join(worker.directory, 'workers')],
    {
      SONAR_API_URL: `http://${host}:${relay.port}`,
      SONAR_TOKEN: worker.workerToken,
      SONAR_AMQP_URL: throughPort(stack.env.SONAR_AMQP_URL, broker.port),
    },
  );
  return { name, kind: 'worker', process, links: { rabbitmq: broker }, clock: worker.clock, relay };
}

const launch = (
  stack: Stack,
  { name, clock }: { name: string; clock: string },
  words: readonly string[],
  env: Record<string, string>,
) =>
  stack.supervise({
    name,
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', ...clockArguments, entry, ...words],
    env: {
      PATH: process.env.PATH ?? '',
      HOME: process.env.HOME ?? '',
      SONAR_TEST_RUN: process.env.SONAR_TEST_RUN ?? '',
      [clockVariable]: clock,
      ...env,
    },
  });

async function reached(what: string, signal: AbortSignal, condition: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + upWithinMs;
  let last: unknown;
  while (performance.now() < until) {
    signal.throwIfAborted();
    try {
      if (await condition()) return;
    } catch (error) {
      last = error;
    }
    await pause(100, signal);
  }
  throw new Error(`${what}: not within ${upWithinMs / 1000} s`, { cause: last });
}
