// A Temporal worker as a service: few pollers, short grace, bounded cache.
import { NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import type { Service } from '#sonar/platform/service.ts';

let installed = false;

/** The SDK's own lines go into the same JSON log. */
function installRuntime(log: Logger): void {
  if (installed) return;
  installed = true;
  const write =
    (level: 'debug' | 'info' | 'warn' | 'error') => (message: string, meta?: Record<string, unknown>) =>
      log[level](
        {
          operation: 'temporal_sdk',
          ...(meta?.error === undefined ? {} : { error: messageOf(meta.error) }),
          workflowId: meta?.workflowId,
        },
        message,
      );
  Runtime.install({
    logger: {
      log: (level, message, meta) =>
        write(level === 'ERROR' ? 'error' : level === 'WARN' ? 'warn' : 'debug')(message, meta),
      trace: write('debug'),
      debug: write('debug'),
      info: write('debug'),
      warn: write('warn'),
      error: write('error'),
    },
    shutdownSignals: [],
  });
}

export function createTemporalWorker(options: {
  name: string;
  address: string;
  namespace: string;
  log: Logger;
  worker: Pick<
    WorkerOptions,
    'taskQueue' | 'activities' | 'workflowBundle' | 'maxConcurrentActivityTaskExecutions'
  >;
  onEnded(reason: string): void;
}): Service {
  let worker: Worker | undefined;
  let connection: NativeConnection | undefined;
  let running: Promise<void> | undefined;
  return {
    name: options.name,
    async start() {
      installRuntime(options.log);
      connection = await NativeConnection.connect({ address: options.address }).catch((error: unknown) => {
        throw new SonarError(
          'unreachable',
          `Temporal at ${options.address} cannot be reached: ${messageOf(error)}`,
          { cause: error },
        );
      });
      worker = await Worker.create({
        connection,
        namespace: options.namespace,
        // An activity that ignores its cancellation must not hold up the end of the process.
        shutdownGraceTime: '5 seconds',
        shutdownForceTime: '10 seconds',
        maxCachedWorkflows: 500,
        maxConcurrentActivityTaskPolls: 4,
        maxConcurrentWorkflowTaskPolls: 4,
        ...options.worker,
      });
      running = worker.run().then(
        () => undefined,
        (error: unknown) => options.onEnded(`${options.name} failed: ${messageOf(error)}`),
      );
    },
    async stop() {
      if (worker?.getState() === 'RUNNING') worker.shutdown();
      await running;
      await connection?.close();
      worker = undefined;
      connection = undefined;
    },
  };
}
