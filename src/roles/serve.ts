// `sonar serve`: the composition root of the control roles. Parts are started in order and stopped in reverse;
// the executor's lease is taken first and given back last, after all that it covers has ended.
import { createFinalizerActivities } from '#activities/finalizer.ts';
import { createReconcilerActivities } from '#activities/reconciler.ts';
import { createApiServer } from '#sonar/api/server.ts';
import type { ExecutorId } from '#sonar/contracts/ids.ts';
import { taskQueues } from '#sonar/contracts/names.ts';
import { createExecutorLease } from '#sonar/coordination/executor-lease.ts';
import { workOffDeletion } from '#sonar/flow/delete-scan.ts';
import { resumeImport } from '#sonar/flow/import-records.ts';
import { placementIsWanted, placeTasks } from '#sonar/flow/place-tasks.ts';
import { publishOutbox } from '#sonar/flow/publish-outbox.ts';
import { returnDeadLetter } from '#sonar/flow/return-dead-letter.ts';
import { createScanWaker } from '#sonar/flow/wake-scans.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { createLoop } from '#sonar/platform/loop.ts';
import { type Service, startAll, stopAll } from '#sonar/platform/service.ts';
import { pause } from '#sonar/platform/wait.ts';
import { readDeadLetters } from '#sonar/transport/amqp-dead-letters.ts';
import { createPublisher } from '#sonar/transport/amqp-publisher.ts';
import { buildName } from './build-name.ts';
import { type ControlParts, openControlParts } from './control-parts.ts';
import { createTemporalWorker } from './temporal-worker.ts';
import { workflowBundlePath } from './workflow-bundle.ts';

export const controlRoles = ['api', 'reconciler', 'finalizer', 'publisher'] as const;
export type ControlRole = (typeof controlRoles)[number];

export interface Served {
  stop(): Promise<void>;
  addresses: Record<string, string>;
  /** The exit code, once the roles have ended: 0 after a stop, 1 when they could not go on. */
  done: Promise<number>;
}

const finalizerSlots = 8;
/** Somebody may have ended the workflow that looks after the others. */
const maintenanceEnsuredEveryMs = 60_000;
// A scan that is deleted is hidden at once: nobody waits for the rest.
const deletionsLookedForEveryMs = 15_000;
const importsLookedForEveryMs = 30_000;
const exitForcedMs = 5_000;

/**
 * Starts the given roles (`all` for every one) in this process.
 * @throws SonarError `usage` for an unknown role, and what the parts' starts throw.
 */
export async function serve(
  roles: readonly string[],
  environment: NodeJS.ProcessEnv,
  options: { host?: string; port?: number } = {},
): Promise<Served> {
  const wanted = parseRoles(roles);
  const log = createLogger(wanted.join(','));
  const parts = await openControlParts(environment, log);
  const done = Promise.withResolvers<number>();
  let services: Service[] = [];
  let exitCode = 0;
  let stopping: Promise<void> | undefined;

  const endAll = async (): Promise<void> => {
    try {
      await stopAll(services);
    } finally {
      await parts.close().finally(() => done.resolve(exitCode));
    }
  };
  const stop = (): Promise<void> => (stopping ??= endAll());
  const end = (reason: string): void => {
    log.fatal({ operation: 'role_ended', reason });
    exitCode = 1;
    // Code that ignores the stop must not keep a process alive that may no longer write.
    setTimeout(() => process.exit(1), exitForcedMs).unref();
    stop().catch((error: unknown) => log.error({ operation: 'role_stop_failed', error: messageOf(error) }));
  };

  const api = wanted.includes('api') ? apiService(parts, options) : undefined;
  try {
    services = [
      ...executorServices(wanted, parts, await bundleFor(wanted), end),
      ...(api ? api.services : []),
    ];
    await startAll(services);
  } catch (error) {
    await stopAll(services).catch(() => undefined);
    await parts.close();
    throw error;
  }
  log.info({ operation: 'role_serving', roles: wanted, api: api?.server.url });
  return { stop, addresses: api ? { api: api.server.url } : {}, done: done.promise };
}

function parseRoles(roles: readonly string[]): ControlRole[] {
  if (roles.includes('all')) return [...controlRoles];
  const unknown = roles.find((role) => !(controlRoles as readonly string[]).includes(role));
  if (unknown !== undefined || roles.length === 0)
    throw new SonarError(
      'usage',
      `${unknown === undefined ? 'no role given' : `there is no role "${unknown}"`}; roles: ${controlRoles.join(', ')}, all`,
    );
  return roles as ControlRole[];
}

const bundleFor = (roles: readonly ControlRole[]): Promise<string | undefined> =>
  roles.includes('reconciler') ? workflowBundlePath() : Promise.resolve(undefined);

/** No executor: the api's writes are compare-and-set by attempt. */
function apiService(parts: ControlParts, options: { host?: string; port?: number }) {
  const waker = createScanWaker({
    temporal: parts.temporal,
    everyMs: parts.settings.SONAR_WAKE_EVERY_MS,
    log: parts.log,
  });
  const server = createApiServer(
    { ...parts, waker },
    { host: options.host ?? '127.0.0.1', port: options.port ?? 0 },
  );
  return { server, services: [waker, server] };
}

/** The roles whose claims carry an executor's id; its lease is the first to start and the last to end. */
function executorServices(
  roles: readonly ControlRole[],
  parts: ControlParts,
  bundle: string | undefined,
  end: (reason: string) => void,
): Service[] {
  const held = roles.filter((role) => role !== 'api');
  if (held.length === 0) return [];
  const lease = createExecutorLease({
    ...parts,
    database: parts.leaseDatabase,
    roles: held,
    build: buildName(),
    onLost: end,
  });
  const { executorId } = lease;
  const temporal = {
    address: parts.connections.SONAR_TEMPORAL_ADDRESS,
    namespace: parts.connections.SONAR_TEMPORAL_NAMESPACE,
    log: parts.log,
    onEnded: end,
  };
  const services: Service[] = [lease];
  const publishing = held.includes('publisher') ? publisherServices(parts, executorId) : undefined;
  if (held.includes('reconciler') && bundle !== undefined) {
    // A publisher in the same process need not find out by asking.
    const placing = { ...parts, executorId, keyId: parts.keys.currentId, onPlaced: () => publishing?.poke() };
    services.push(
      createTemporalWorker({
        ...temporal,
        name: 'reconciler',
        worker: {
          taskQueue: taskQueues.reconciler,
          workflowBundle: { codePath: bundle },
          activities: createReconcilerActivities(placing),
          maxConcurrentActivityTaskExecutions: 20,
        },
      }),
      createLoop({
        name: 'maintenance',
        log: parts.log,
        minRestMs: maintenanceEnsuredEveryMs,
        maxRestMs: maintenanceEnsuredEveryMs,
        work: async () => {
          if ((await parts.temporal.ensureMaintenance()) === 'restarted')
            parts.log.warn({ operation: 'maintenance_restarted' });
          return false;
        },
      }),
      createLoop({
        name: 'deletion',
        log: parts.log,
        minRestMs: 1_000,
        maxRestMs: deletionsLookedForEveryMs,
        work: (signal) => workOffDeletion(parts, signal),
      }),
      createLoop({
        name: 'placement',
        log: parts.log,
        minRestMs: parts.settings.SONAR_PLACEMENT_EVERY_MS,
        maxRestMs: 1_000,
        work: async (signal) => {
          if (!(await placementIsWanted(parts.database))) return false;
          const result = await placeTasks(placing);
          if (!result?.served) return false;
          // Slots come free in their own time: looking again at once would only find them taken.
          await pause(parts.settings.SONAR_PLACEMENT_EVERY_MS, signal);
          return true;
        },
      }),
    );
  }
  if (held.includes('finalizer')) {
    const waker = createScanWaker({
      temporal: parts.temporal,
      everyMs: parts.settings.SONAR_WAKE_EVERY_MS,
      log: parts.log,
    });
    services.push(
      waker,
      createTemporalWorker({
        ...temporal,
        name: 'finalizer',
        worker: {
          taskQueue: taskQueues.finalizer,
          activities: createFinalizerActivities({
            ...parts,
            executorId,
            wake: (scanId) => waker.wake(scanId),
          }),
          maxConcurrentActivityTaskExecutions: finalizerSlots,
        },
      }),
      createLoop({
        name: 'imports',
        log: parts.log,
        minRestMs: 1_000,
        maxRestMs: importsLookedForEveryMs,
        work: () => resumeImport(parts),
      }),
    );
  }
  if (publishing) services.push(...publishing.services);
  return services;
}

function publisherServices(
  parts: ControlParts,
  executorId: ExecutorId,
): { services: Service[]; poke: () => void } {
  const { settings, log } = parts;
  const publisher = createPublisher(parts.connections.SONAR_AMQP_URL, {
    log,
    window: settings.SONAR_PUBLISH_WINDOW,
    queueType: settings.SONAR_QUEUE_TYPE,
    messageTtlMs: settings.SONAR_MESSAGE_TTL_MS,
    parkMs: settings.SONAR_TAG_PARKED_MS,
  });
  const outbox = createLoop({
    name: 'outbox',
    log,
    minRestMs: 25,
    maxRestMs: 500,
    work: async () => (await publishOutbox({ ...parts, publisher, executorId })) > 0,
  });
  return {
    poke: () => outbox.poke(),
    services: [
      { name: 'broker', start: () => Promise.resolve(), stop: () => publisher.close() },
      outbox,
      readDeadLetters(parts.connections.SONAR_AMQP_URL, (letter) => returnDeadLetter(parts, letter), { log }),
    ],
  };
}
