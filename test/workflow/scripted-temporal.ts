// A Temporal for tests, with both task queues served by activities that the tests script.
import type { WorkflowHandle } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { FinalizerActivities, ReconcilerActivities } from '#sonar/contracts/activities.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import { scanWorkflowId, taskQueues, wakeSignal } from '#sonar/contracts/names.ts';
import { newId } from '#sonar/platform/ids.ts';
import { workflowBundlePath } from '#sonar/roles/workflow-bundle.ts';
import { cacheDirectory } from '#sonar/stack/binary-cache.ts';
import { ensureInstalled } from '#sonar/stack/installation.ts';
import { readTemporalDevFile } from '#sonar/stack/temporal-dev-file.ts';
import { timeSkippingServer } from '#sonar/stack/time-skipping-server.ts';
import { temporalWays } from '#sonar/stack/wheel-installation.ts';
import { connectTemporal, type ScanTitle, type TemporalGateway } from '#sonar/transport/temporal-client.ts';
import { HistoryView } from './history-view.ts';
import { type ActivityName, Calls, type ScanScript } from './scripted-scan.ts';

// As the server names them in its API.
const indexedValueTypes: Record<string, number> = { Text: 1, Keyword: 2 };

const servers = {
  async 'time-skipping'() {
    const environment = await TestWorkflowEnvironment.createTimeSkipping({
      server: { executable: { type: 'existing-path', path: await timeSkippingServer() } },
    });
    // This server lets a workflow hang that sets an attribute it does not know.
    const types = Object.entries(readTemporalDevFile().searchAttributes);
    await environment.connection.operatorService.addSearchAttributes({
      namespace: 'default',
      searchAttributes: Object.fromEntries(types.map(([name, type]) => [name, indexedValueTypes[type] ?? 0])),
    });
    return environment;
  },
  /** The real server, in memory, whose runs are told after a few events to continue as new. */
  async 'dev-server'() {
    const { searchAttributes } = readTemporalDevFile();
    const download = { environment: process.env, signal: new AbortController().signal };
    const cache = cacheDirectory(process.env);
    const { files } = await ensureInstalled(temporalWays(), cache, download, () => undefined);
    return TestWorkflowEnvironment.createLocal({
      server: {
        executable: { type: 'existing-path', path: files.program },
        extraArgs: [
          ...Object.entries(searchAttributes).flatMap(([name, type]) => [
            '--search-attribute',
            `${name}=${type}`,
          ]),
          '--dynamic-config-value',
          `limit.historyCount.suggestContinueAsNew=${suggestedEvents}`,
        ],
      },
    });
  },
};

/** Of the real server here; ordinary ones suggest it at 4,096. */
const suggestedEvents = 60;

export interface ScriptedRun {
  scanId: ScanId;
  handle: WorkflowHandle;
  calls: Calls;
}

export class ScriptedTemporal {
  readonly environment: TestWorkflowEnvironment;
  /** As the program itself reaches Temporal. */
  readonly gateway: TemporalGateway;
  readonly #scans = new Map<ScanId, { script: ScanScript; calls: Calls }>();
  readonly #started: ScriptedRun[] = [];
  readonly #workers: Worker[] = [];
  readonly #running: Promise<void>[] = [];
  /** Answers what is asked for no scan. */
  maintain: ReconcilerActivities['maintain'] = () => Promise.reject(new Error('not scripted'));
  drainAny: () => Promise<{ batches: number }> = () => Promise.reject(new Error('not scripted'));

  private constructor(environment: TestWorkflowEnvironment, gateway: TemporalGateway) {
    this.environment = environment;
    this.gateway = gateway;
  }

  /** `workflowBundle`: other workflows than those of the program. */
  static async start(
    kind: keyof typeof servers = 'time-skipping',
    workflowBundle?: WorkflowBundleOption,
  ): Promise<ScriptedTemporal> {
    Runtime.install({
      logger: new DefaultLogger('ERROR'),
      shutdownSignals: [],
      // It warns of what the time-skipping server cannot do.
      telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
    });
    const environment = await servers[kind]();
    const gateway = await connectTemporal({ address: environment.address, namespace: 'default' });
    const started = new ScriptedTemporal(environment, gateway);
    await started.#serve(workflowBundle ?? { codePath: await workflowBundlePath() });
    return started;
  }

  async #serve(workflowBundle: WorkflowBundleOption): Promise<void> {
    const worker = {
      connection: this.environment.nativeConnection,
      namespace: 'default',
      // Recorded histories name it.
      identity: 'test',
      // A test that failed leaves activities that nobody will answer.
      shutdownForceTime: '1 second',
    };
    const ask =
      <Name extends Exclude<ActivityName, 'maintain'>>(name: Name, fallback: unknown) =>
      async ({ scanId }: { scanId: ScanId | null }): Promise<never> => {
        const scan = this.#scans.get(scanId as ScanId);
        if (!scan) throw new Error(`${name} was called for an unknown scan`);
        const call = scan.calls.record(name);
        return (await (scan.script[name]?.(call) ?? fallback)) as never;
      };
    const reconciler: ReconcilerActivities = {
      plan: ask('plan', undefined),
      place: ask('place', { placed: '' }),
      recover: ask('recover', { recovered: '' }),
      settle: ask('settle', { status: 'Running' }),
      requestCancel: ask('requestCancel', undefined),
      maintain: () => this.maintain(),
    };
    const drain = ask('drain', { batches: 0 });
    const finalizer: FinalizerActivities = {
      drain: (input) => (input.scanId === null ? this.drainAny() : drain(input)),
    };
    this.#workers.push(
      await Worker.create({
        ...worker,
        taskQueue: taskQueues.reconciler,
        activities: reconciler,
        workflowBundle,
      }),
      await Worker.create({ ...worker, taskQueue: taskQueues.finalizer, activities: finalizer }),
    );
    for (const started of this.#workers) this.#running.push(started.run());
  }

  /** Starts the scan's workflow as the program does; the script is made for the run that it answers. */
  async startScan(
    script: (run: ScriptedRun) => ScanScript,
    title: Partial<ScanTitle> = {},
  ): Promise<ScriptedRun> {
    const scanId = newId<ScanId>();
    const handle = this.environment.client.workflow.getHandle(scanWorkflowId(scanId));
    const run = { scanId, calls: new Calls(), handle };
    this.#started.push(run);
    this.#scans.set(scanId, { script: script(run), calls: run.calls });
    await this.gateway.startScan({ scanId, name: 'night watch', definition: 'loopback-survey', ...title });
    return run;
  }

  /** The histories of all runs of a workflow, the first one first. */
  async chainOf({ handle }: Pick<ScriptedRun, 'handle'>): Promise<HistoryView[]> {
    const chain = [await HistoryView.of(handle)];
    for (let runId = chain[0]?.previousRunId; runId !== undefined; runId = chain[0]?.previousRunId)
      chain.unshift(
        await HistoryView.of(this.environment.client.workflow.getHandle(handle.workflowId, runId)),
      );
    return chain;
  }

  /** What a test that failed has left would hold the time of the next one. */
  async endLeftovers(): Promise<void> {
    for (const { handle } of this.#started.splice(0))
      await handle.terminate('its test has ended').catch(() => undefined);
  }

  async stop(): Promise<void> {
    for (const worker of this.#workers) worker.shutdown();
    try {
      await Promise.all(this.#running);
    } finally {
      await this.gateway.close();
      await this.environment.teardown();
      await Runtime.instance().shutdown();
    }
  }
}

/** Straight to the server, past the waker that would make two of them. */
export async function sendWakes({ handle }: Pick<ScriptedRun, 'handle'>, count: number): Promise<void> {
  // The server answers so many at once without refusing any.
  const atOnce = 100;
  for (let sent = 0; sent < count; sent += atOnce)
    await Promise.all(
      Array.from({ length: Math.min(atOnce, count - sent) }, () => handle.signal(wakeSignal)),
    );
}

/** A time-skipping server for the tests of the calling file. */
export function useTimeSkipping(): { current: ScriptedTemporal } {
  const box: { current?: ScriptedTemporal } = {};
  beforeAll(async () => {
    box.current = await ScriptedTemporal.start();
  });
  afterEach(() => box.current?.endLeftovers());
  afterAll(() => box.current?.stop());
  return box as { current: ScriptedTemporal };
}
