// A worker with a scripted api and broker, in a folder of its own that is gone afterwards.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { z } from 'zod';
import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import type { RenderedArgument } from '#sonar/contracts/rendered-command.ts';
import type { Result } from '#sonar/contracts/worker-api.ts';
import { newId } from '#sonar/platform/ids.ts';
import { createLogger, type Logger } from '#sonar/platform/logger.ts';
import type { Puller } from '#sonar/transport/amqp-consumer.ts';
import { workerConfigSchema } from '#sonar/worker/config.ts';
import { createWorker, type TagWorker } from '#sonar/worker/worker.ts';
import { type ScriptedApi, startScriptedApi } from './scripted-api.ts';
import { createScriptedPuller, type ScriptedPuller } from './scripted-puller.ts';
import { createWatch, type Watch } from './watch.ts';

export interface Workbench extends AsyncDisposable {
  readonly api: ScriptedApi;
  readonly puller: ScriptedPuller;
  readonly watch: Watch;
  readonly directory: string;
  readonly log: Logger;
  config(overrides?: Partial<z.input<typeof workerConfigSchema>>): z.infer<typeof workerConfigSchema>;
  /** Made, not started; stopped when the bench is put away. */
  worker(overrides?: Partial<z.input<typeof workerConfigSchema>>): TagWorker;
  message(command: (string | RenderedArgument)[], overrides?: Partial<DispatchMessage>): DispatchMessage;
  /** The accepted result of the attempt. */
  resultOf(message: DispatchMessage): Promise<Result>;
}

/** `pullFrom` makes the worker's own puller, for a real broker in place of the scripted one. */
export async function openWorkbench(pullFrom?: (log: Logger) => Puller): Promise<Workbench> {
  const watch = createWatch();
  const api = await startScriptedApi(watch);
  const puller = createScriptedPuller(watch);
  const directory = await mkdtemp(join(tmpdir(), 'sonar-worker-'));
  const log = createLogger('test-worker', process.env.SONAR_TEST_LOG ?? 'silent');
  const workers: TagWorker[] = [];

  const config: Workbench['config'] = (overrides = {}) =>
    workerConfigSchema.parse({
      apiUrl: api.url,
      token: api.token,
      amqpUrl: 'amqp://unused',
      name: 'bench',
      tags: ['probe'],
      directory,
      termGraceMs: 500,
      drainMs: 500,
      startedForMs: 20_000,
      resultForMs: 20_000,
      transferForMs: 2_000,
      retryFirstMs: 10,
      retryMaxMs: 50,
      ...overrides,
    });

  return {
    api,
    puller,
    watch,
    directory,
    log,
    config,
    worker(overrides) {
      const worker = createWorker(config(overrides), { log, puller: pullFrom?.(log) ?? puller });
      workers.push(worker);
      return worker;
    },
    message(command, overrides = {}) {
      const attemptId = newId();
      return {
        v: 1,
        attemptId,
        taskId: newId(),
        scanId: newId(),
        step: 'probe-step',
        tag: 'probe',
        dispatchKey: 'scan/task/probe-step',
        command: command.map((item) =>
          typeof item === 'string' ? [{ kind: 'text' as const, text: item }] : item,
        ),
        stdin: null,
        env: {},
        inputs: [],
        outputs: [],
        okExit: [0],
        timeoutMs: 60_000,
        credential: api.credential(attemptId),
        ...overrides,
      };
    },
    resultOf: ({ attemptId }) => watch.until(`the result of ${attemptId}`, () => api.results.get(attemptId)),
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => Promise.all([worker.stop(), worker.stop()])));
      await api[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export const decode = (head: string | null): string => Buffer.from(head ?? '', 'base64').toString();
