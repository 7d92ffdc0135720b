// Sonar as its users run it: roles and workers in processes of their own, on the run's stack, with a database,
// a Temporal namespace and tags that no other test file has.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiClient, createApiClient } from '#sonar/cli/api-client.ts';
import { chooseApiPort } from '#sonar/cli/api-port.ts';
import { watchScan } from '#sonar/cli/watch-scan.ts';
import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import { createLocalToken } from '#sonar/roles/bootstrap.ts';
import { applyTemporalConfig } from '#sonar/stack/temporal-dev-file.ts';
import { type ClonedDatabase, cloneDatabase } from '../fixtures/cloned-database.ts';

const root = join(import.meta.dirname, '..', '..');
// A machine that many share starts slowly; what hangs is found by the same bound.
const boundMs = 150_000;

export interface SonarProcess {
  readonly name: string;
  readonly child: ChildProcess;
  readonly log: string;
  /** Ends it in order, and by SIGKILL when it does not. */
  stop(): Promise<void>;
}

export class SonarProcesses {
  readonly clone: ClonedDatabase;
  readonly client: ApiClient;
  readonly apiUrl: string;
  readonly directory: string;
  /** A tag of this test file alone: the broker is everybody's. */
  readonly tag: string;
  readonly #environment: Record<string, string>;
  readonly #workerToken: string;
  readonly adminToken: string;
  readonly #running: SonarProcess[] = [];

  private constructor(parts: {
    clone: ClonedDatabase;
    client: ApiClient;
    apiUrl: string;
    directory: string;
    tag: string;
    environment: Record<string, string>;
    workerToken: string;
    adminToken: string;
  }) {
    this.clone = parts.clone;
    this.client = parts.client;
    this.apiUrl = parts.apiUrl;
    this.directory = parts.directory;
    this.tag = parts.tag;
    this.#environment = parts.environment;
    this.#workerToken = parts.workerToken;
    this.adminToken = parts.adminToken;
  }

  static async prepare(): Promise<SonarProcesses> {
    const clone = await cloneDatabase();
    const namespace = `e2e-${process.pid}-${Date.now()}`;
    const environment: Record<string, string> = {
      ...testServices(),
      SONAR_DATABASE_URL: clone.url,
      SONAR_TEMPORAL_NAMESPACE: namespace,
    };
    await applyTemporalConfig(environment.SONAR_TEMPORAL_ADDRESS ?? '', namespace);
    const adminToken = await createLocalToken(clone.url, 'admin');
    const workerToken = await createLocalToken(clone.url, 'worker');
    const apiUrl = `http://127.0.0.1:${await chooseApiPort(undefined)}`;
    const client = createApiClient({
      apiUrl,
      apiUrlSource: 'the test',
      token: adminToken,
      tokenSource: 'the test',
    });
    return new SonarProcesses({
      clone,
      client,
      apiUrl,
      directory: mkdtempSync(join(tmpdir(), 'sonar-e2e-')),
      tag: `t${Date.now().toString(36)}${process.pid}`,
      environment,
      workerToken,
      adminToken,
    });
  }

  /** Starts roles in one process; with the api among them, it answers when this returns. */
  async serve(roles: string, settings: Record<string, string> = {}): Promise<SonarProcess> {
    const started = this.#launch(
      `serve-${roles}`,
      ['serve', '--role', roles, '--port', new URL(this.apiUrl).port],
      { ...this.#environment, ...settings },
    );
    const ready = /(^|,)(api|all)(,|$)/.test(roles)
      ? async () => (await fetch(`${this.apiUrl}/health/ready`, { signal: AbortSignal.timeout(2_000) })).ok
      : () => readFileSync(started.log, 'utf8').includes('"role_serving"');
    await until(`${roles} serves`, ready, () => tail(started));
    return started;
  }

  async worker(
    name: string,
    options: { tags?: string; slots?: number; path?: string } = {},
  ): Promise<SonarProcess> {
    const started = this.#launch(
      name,
      [
        'worker',
        'start',
        '--name',
        name,
        '--tags',
        options.tags ?? this.tag,
        '--slots',
        String(options.slots ?? 2),
        '--dir',
        join(this.directory, 'workers'),
      ],
      {
        SONAR_API_URL: this.apiUrl,
        SONAR_TOKEN: this.#workerToken,
        SONAR_AMQP_URL: this.#environment.SONAR_AMQP_URL ?? '',
        ...(options.path === undefined ? {} : { PATH: options.path }),
      },
    );
    const alive = async () =>
      (await this.client.workers.take({}, 100)).items.some(
        (worker) => worker.name === name && worker.state === 'alive' && worker.lastPulseAt !== null,
      );
    await until(`worker ${name} is alive`, alive, () => tail(started));
    return started;
  }

  /** Runs a command of the CLI to its end. */
  async cli(
    words: readonly string[],
    environment: Record<string, string> = {},
    stdin = '',
  ): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const child = spawn(process.execPath, [join(root, 'bin', 'sonar.mjs'), ...words], {
      cwd: this.directory,
      env: { ...base(), SONAR_API_URL: this.apiUrl, SONAR_TOKEN: this.adminToken, ...environment },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin.on('error', () => undefined).end(stdin);
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, stdout, stderr };
  }

  /** Applies the text and starts a scan of it over loopback. */
  async start(definition: string, inputs: Record<string, string | string[]> = {}): Promise<string> {
    const applied = await this.client.applyDefinition(definition);
    const scan = await this.client.startScan({
      definition: applied.name,
      inputs,
      scope: { allow: ['127.0.0.0/8'], deny: [] },
    });
    return scan.id;
  }

  async ended(scanId: string): Promise<ScanDetail> {
    let last: ScanDetail | undefined;
    for await (const event of watchScan(this.client, scanId, {
      pollMs: 200,
      reached: true,
      signal: AbortSignal.timeout(240_000),
    }))
      if (event.kind === 'seen') last = event.detail;
    if (last?.finishedAt) return last;
    throw new Error(
      `scan ${scanId} did not end: ${JSON.stringify(last?.steps)}\n${this.#running.map(tail).join('\n')}`,
    );
  }

  async stop(): Promise<void> {
    for (const running of this.#running.toReversed()) await running.stop();
    await this.clone.drop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  #launch(name: string, words: readonly string[], environment: Record<string, string>): SonarProcess {
    const log = join(this.directory, `${name}-${this.#running.length}.log`);
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', join(root, 'src', 'main.ts'), ...words],
      {
        cwd: this.directory,
        env: { ...base(), ...environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const file = createWriteStream(log);
    child.stdout.pipe(file, { end: false });
    child.stderr.pipe(file, { end: false });
    const started: SonarProcess = {
      name,
      child,
      log,
      async stop() {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const force = setTimeout(() => child.kill('SIGKILL'), 20_000);
        child.kill('SIGTERM');
        await once(child, 'exit');
        clearTimeout(force);
      },
    };
    this.#running.push(started);
    return started;
  }
}

/** Waits for a condition, never for a time; a bound that is reached says what was waited for and why. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  why: () => string = () => '',
): Promise<void> {
  const end = Date.now() + boundMs;
  while (Date.now() < end) {
    if (
      await Promise.resolve()
        .then(condition)
        .catch(() => false)
    )
      return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${what}: not within ${boundMs} ms\n${why()}`);
}

const tail = (started: SonarProcess): string =>
  `--- ${started.name}\n${readFileSync(started.log, 'utf8').slice(-2_000)}`;

/** `SONAR_TEST_RUN` is how a process that outlives the run is found. */
const base = (): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  SONAR_TEST_RUN: process.env.SONAR_TEST_RUN ?? '',
});

function testServices(): Record<string, string> {
  const names = [
    'SONAR_AMQP_URL',
    'SONAR_TEMPORAL_ADDRESS',
    'SONAR_S3_ENDPOINT',
    'SONAR_S3_BUCKET',
    'SONAR_MASTER_KEYS',
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_REGION',
  ];
  return Object.fromEntries(
    names.map((name) => {
      const variable = `SONAR_TEST_${name.replace(/^SONAR_/, '')}`;
      const value = process.env[variable];
      if (!value) throw new Error(`${variable} is not set: the e2e project starts the stack itself`);
      return [name, value];
    }),
  );
}
