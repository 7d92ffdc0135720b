import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { probeDatabase } from '#sonar/db/database-probe.ts';
import { openDatabase } from '#sonar/db/pool.ts';
import { isAlive, type ProcessIdentity } from '#sonar/stack/process-identity.ts';
import { type Stack, type StackEnvironment, type StackEvent, startStack } from '#sonar/stack/stack.ts';
import { applyTemporalConfig } from '#sonar/stack/temporal-dev-file.ts';
import { probeBroker } from '#sonar/transport/amqp-probe.ts';
import { ensureBucket } from '#sonar/transport/s3-setup.ts';
import { applyTemporalSetup, probeTemporal } from '#sonar/transport/temporal-setup.ts';
import { eventually, guardOf, listeningAddresses, processesOf } from './stack-observation.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();
const first = join(folder, 'first');
const second = join(folder, 'second');
const events: StackEvent[] = [];
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ dataDir: first, temporalUi: false, onProgress: (event) => events.push(event) });
});
afterAll(() => stack.stop());

/** Resolves at the first event that fits, from now on. */
function nextEvent(service: string, state: StackEvent['state']): () => Promise<void> {
  const from = events.length;
  return () =>
    eventually(
      () => events.slice(from).some((event) => event.service === service && event.state === state),
      20_000,
    );
}

interface Supervisor {
  child: ChildProcess;
  env: StackEnvironment;
  rolePids: number[];
}

async function superviseElsewhere(
  dataDir: string,
  environment: NodeJS.ProcessEnv,
  role?: string,
): Promise<Supervisor> {
  const entry = fileURLToPath(new URL('./fixtures/supervisor.ts', import.meta.url));
  const { PATH, HOME, XDG_CACHE_HOME } = process.env;
  const child = spawn(process.execPath, [entry, dataDir, ...(role ? [role] : [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH, HOME, ...(XDG_CACHE_HOME && { XDG_CACHE_HOME }), ...environment },
  });
  for await (const line of createInterface({ input: child.stdout })) return { child, ...JSON.parse(line) };
  throw new Error('the supervisor ended before it was up');
}

async function kill(supervisor: Supervisor): Promise<void> {
  const ended = once(supervisor.child, 'exit');
  supervisor.child.kill('SIGKILL');
  await ended;
}

test('all four services answer by their protocols', async () => {
  const { env } = stack;
  expect(await probeDatabase(env.SONAR_DATABASE_URL)).toMatch(/^\d+/);
  expect(await probeBroker(env.SONAR_AMQP_URL)).toMatch(/^\d+/);
  expect(await probeTemporal(env.SONAR_TEMPORAL_ADDRESS)).toMatch(/^\d+/);
  await ensureBucket({
    endpoint: env.SONAR_S3_ENDPOINT,
    bucket: env.SONAR_S3_BUCKET,
    region: env.AWS_REGION,
    accessKeyId: env.AWS_ACCESS_KEY_ID,
    secretAccessKey: env.AWS_SECRET_ACCESS_KEY,
  });
  expect(Buffer.from(env.SONAR_MASTER_KEYS.slice('k1:'.length), 'base64')).toHaveLength(32);
});

test('what temporal-dev.yaml says can be given to a server again, and to another namespace of it', async () => {
  const address = stack.env.SONAR_TEMPORAL_ADDRESS;
  await applyTemporalConfig(address);
  await applyTemporalConfig(address, 'another');
  const changed = {
    namespace: 'another',
    retentionMs: 86_400_000,
    searchAttributes: { SonarScanName: 'Int' },
  } as const;
  await expect(applyTemporalSetup(address, changed)).rejects.toThrow(
    'SonarScanName of namespace another is not of type Int',
  );
});

test('nothing listens beyond loopback', () => {
  const ipv4 = '0100007F';
  const ipv6 = '00000000000000000000000001000000';
  const addresses = listeningAddresses(processesOf(first));
  expect(addresses.length).toBeGreaterThan(10);
  expect(addresses.filter((address) => address !== ipv4 && address !== ipv6)).toEqual([]);
});

test.each(['postgres', 's3', 'temporal', 'rabbitmq'] as const)(
  '%s, killed, is up again at its address',
  async (name) => {
    const service = stack.services.find((candidate) => candidate.name === name);
    const before = service?.pid;
    const [stopped, ready] = [nextEvent(name, 'stopped'), nextEvent(name, 'ready')];
    process.kill(before ?? 0, 'SIGKILL');
    await stopped();
    await ready();
    expect(service?.pid).not.toBe(before);
  },
);

test('a second supervisor of the same data folder is refused by the pid of the first', async () => {
  await expect(startStack({ dataDir: first })).rejects.toMatchObject({
    code: 'already_running',
    message: expect.stringContaining(String(process.pid)),
  });
});

test('a role that ends is started again, and can be stopped for good', async () => {
  const role = await stack.supervise({ name: 'sleeper', command: 'sleep', args: ['600'], env: {} });
  const pid = role.pid;
  const ready = nextEvent('sleeper', 'ready');
  process.kill(pid ?? 0, 'SIGKILL');
  await ready();
  expect(role.restarts).toBe(1);
  expect(role.pid).not.toBe(pid);
  await role.stop();
  expect(role.pid).toBeUndefined();
});

test('a role that does not come up is a fault with the end of its log', async () => {
  const args = ['-c', 'echo no such setting >&2; exit 3'];
  await expect(
    stack.supervise({ name: 'broken', command: 'sh', args, env: {}, ready: () => Promise.resolve(false) }),
  ).rejects.toMatchObject({
    code: 'service_failed',
    message: expect.stringMatching(/broken exited with 3[^]*broken\.log[^]*\| no such setting[^]*Ways out/),
  });
});

test('an address that does not answer is a fault that names its variable', async () => {
  const environment = { ...stack.env, SONAR_S3_ENDPOINT: 'http://127.0.0.1:1' };
  const start = startStack({ dataDir: join(folder, 'unreachable'), environment, externalWithinMs: 300 });
  await expect(start).rejects.toMatchObject({
    code: 'unreachable',
    message: expect.stringMatching(/SONAR_S3_ENDPOINT names http:\/\/127.0.0.1:1[^]*unset SONAR_S3_ENDPOINT/),
  });
});

test('a start that fails half way stops what it started', async () => {
  const dataDir = join(folder, 'failing');
  const data = join(dataDir, 'postgres/data');
  mkdirSync(data, { recursive: true });
  writeFileSync(join(data, 'PG_VERSION'), '9\n');
  const told: StackEvent[] = [];
  const start = startStack({ dataDir, temporalUi: false, onProgress: (event) => told.push(event) });
  await expect(start).rejects.toMatchObject({
    code: 'data_unusable',
    message: expect.stringContaining('PostgreSQL 9'),
  });
  expect(told.some(({ service, state }) => service === 'rabbitmq' && state === 'starting')).toBe(true);
  expect(processesOf(dataDir)).toEqual([]);
  expect(readFileSync(join(dataDir, 'ports.json'), 'utf8')).toContain('postgres');
});

test('an aborted start stops what it started and throws the reason', async () => {
  const dataDir = join(folder, 'aborted');
  const abort = new AbortController();
  const reason = new Error('Ctrl-C');
  const start = startStack({
    dataDir,
    environment: { ...stack.env, SONAR_S3_ENDPOINT: '' },
    signal: abort.signal,
    onProgress: (event) => event.service === 's3' && event.state === 'starting' && abort.abort(reason),
  });
  await expect(start).rejects.toBe(reason);
  expect(processesOf(dataDir)).toEqual([]);
});

test('side by side: a second stack shares nothing, and when its supervisor is killed its guard ends it', async () => {
  const other = await superviseElsewhere(second, {}, 'role');
  const mine = new Set<string>(Object.values(stack.env));
  const shared = Object.entries(other.env).filter(([, value]) => mine.has(value));
  expect(shared.map(([name]) => name)).toEqual(['SONAR_TEMPORAL_NAMESPACE', 'SONAR_S3_BUCKET', 'AWS_REGION']);
  const processes = processesOf(second);
  expect(processes.length).toBeGreaterThan(5);
  await kill(other);
  await eventually(() => !processes.some(isAlive), 20_000);
  await eventually(() => processesOf(second).length === 0, 5_000);
  expect(processesOf(first).length).toBeGreaterThan(4);

  // The next start has the same addresses and the data. (The two slowest starts are spared by the first stack's.)
  const { SONAR_AMQP_URL, SONAR_TEMPORAL_ADDRESS } = stack.env;
  const borrowed = { SONAR_AMQP_URL, SONAR_TEMPORAL_ADDRESS };
  const again = await startStack({ dataDir: second, environment: borrowed, temporalUi: false });
  try {
    expect(again.env).toEqual({ ...other.env, ...borrowed });
    const database = openDatabase({
      url: again.env.SONAR_DATABASE_URL,
      applicationName: 'test',
      maxConnections: 1,
    });
    try {
      await database.script('select value from kept');
    } finally {
      await database.close();
    }
  } finally {
    await again.stop();
  }
});

test('when the guard is killed with its supervisor, the next start ends what they left', async () => {
  const dataDir = join(folder, 'unguarded');
  const orphaned = await superviseElsewhere(dataDir, { ...stack.env }, 'role');
  const left: ProcessIdentity[] = processesOf(dataDir);
  expect(left.map(({ pid }) => pid)).toEqual(orphaned.rolePids);
  // Stopped first: a supervisor that still runs would launch another guard.
  orphaned.child.kill('SIGSTOP');
  process.kill(guardOf(dataDir), 'SIGKILL');
  await kill(orphaned);
  expect(left.every(isAlive)).toBe(true);
  const told: StackEvent[] = [];
  const next = await startStack({
    dataDir,
    environment: { ...stack.env },
    onProgress: (event) => told.push(event),
  });
  try {
    expect(left.some(isAlive)).toBe(false);
    expect(told).toContainEqual({
      service: 'stack',
      state: 'stopped',
      detail: 'left by an earlier run: role',
    });
  } finally {
    await next.stop();
  }
});

test('roles stop before services, and a stop leaves nothing', async () => {
  await stack.supervise({ name: 'last', command: 'sleep', args: ['600'], env: {} });
  await stack.supervise({ name: 'lastest', command: 'sleep', args: ['600'], env: {} });
  const processes = processesOf(first);
  const from = events.length;
  await stack.stop();
  const order = events.slice(from).map(({ service }) => service);
  expect(order.slice(0, 2)).toEqual(['lastest', 'last']);
  expect(order.slice(2).toSorted()).toEqual(['epmd', 'postgres', 'rabbitmq', 's3', 'temporal']);
  expect(processes.filter(isAlive)).toEqual([]);
});
