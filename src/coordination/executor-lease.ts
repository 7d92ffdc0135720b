// A control process's lease. Each start is a new executor; peers may take over what an expired one had
// claimed, so a process that can no longer prove its lease must stop. Trust in the lease is local and shorter
// than the lease: it is counted from when the last good renewal was sent, not from when its answer came.
import { hostname } from 'node:os';
import type { ExecutorId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import type { Service } from '#sonar/platform/service.ts';
import { insertExecutor, releaseExecutor, renewExecutor } from '#sonar/stores/executors.ts';

/** Raised only when old work cannot be taken over by the new code. */
const compatibilityVersion = 'sonar-control-v1';
/** Part of the lease that a renewal is trusted for: with the usual 75 s and a renewal every 10 s three may be lost. */
const trustedPart = 0.6;

export interface ExecutorLease extends Service {
  readonly executorId: ExecutorId;
}

export function createExecutorLease(options: {
  /** With a connection for the lease alone: a pool that is busy must not hold up the proof that its process lives. */
  database: Database;
  roles: readonly string[];
  build: string;
  settings: Pick<Settings, 'SONAR_EXECUTOR_LEASE_MS' | 'SONAR_EXECUTOR_RENEW_MS'>;
  log: Logger;
  /** The process must end: its lease is gone or cannot be proved. Called once. */
  onLost(reason: string): void;
}): ExecutorLease {
  const { database, log, settings } = options;
  const executorId = newId<ExecutorId>();
  const trustMs = settings.SONAR_EXECUTOR_LEASE_MS * trustedPart;
  let timer: NodeJS.Timeout | undefined;
  let renewing: Promise<void> | undefined;
  let provenAt = 0;
  let lost = false;

  const lose = (reason: string): void => {
    if (lost) return;
    lost = true;
    clearInterval(timer);
    log.error({ operation: 'executor_watchdog', executorId, reason });
    options.onLost(reason);
  };

  const renew = async (): Promise<void> => {
    const sentAt = performance.now();
    try {
      const renewed = await renewExecutor(database, executorId, settings.SONAR_EXECUTOR_LEASE_MS);
      if (renewed === 1) provenAt = sentAt;
      else lose('the lease has expired or was revoked');
    } catch (error) {
      log.warn({ operation: 'executor_coordination', executorId, error: messageOf(error) });
    }
  };

  const beat = (): void => {
    if (performance.now() - provenAt > trustMs) lose(`no renewal for ${trustMs} ms`);
    // One renewal at a time: a slow database is not asked twice.
    renewing ??= renew().finally(() => {
      renewing = undefined;
    });
  };

  return {
    name: 'executor lease',
    executorId,
    async start() {
      provenAt = performance.now();
      await insertExecutor(database, {
        executorId,
        applicationName: 'sonar',
        applicationVersion: compatibilityVersion,
        build: options.build,
        roles: options.roles,
        host: hostname(),
        pid: process.pid,
        leaseMs: settings.SONAR_EXECUTOR_LEASE_MS,
      });
      log.info({ operation: 'executor_startup', executorId, roles: options.roles });
      timer = setInterval(beat, settings.SONAR_EXECUTOR_RENEW_MS);
    },
    async stop() {
      clearInterval(timer);
      await renewing;
      if (lost) return;
      await releaseExecutor(database, executorId);
      log.info({ operation: 'executor_shutdown', executorId });
    },
  };
}
