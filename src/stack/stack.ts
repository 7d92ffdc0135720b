import { randomUUID } from 'node:crypto';
import { cacheDirectory } from './binary-cache.ts';
import { openDataDirectory } from './data-directory.ts';
import { externalService } from './external-service.ts';
import { launchGuard } from './guard-launch.ts';
import { reservePorts } from './port-memory.ts';
import { ProcessGroup } from './process-group.ts';
import { endRun, leftLedgers, ProcessLedger, runVariable } from './process-ledger.ts';
import { type RoleSpec, type SupervisedProcess, superviseRole } from './role-supervision.ts';
import { type ServiceName, type StackEnvironment, serviceNames } from './service-contract.ts';
import { type RunningService, startService } from './service-start.ts';
import { StackError } from './stack-error.ts';
import type { StackEvent } from './stack-event.ts';
import { loadSecrets } from './stack-secrets.ts';
import { lockDataDirectory } from './supervisor-lock.ts';
import { readTemporalDevFile, type TemporalDevFile } from './temporal-dev-file.ts';

export type { RoleSpec, SupervisedProcess } from './role-supervision.ts';
export type { StackEnvironment } from './service-contract.ts';
export type { RunningService } from './service-start.ts';
export type { StackEvent } from './stack-event.ts';

export interface StackOptions {
  /** Everything of this stack is kept here across restarts: data, ports, secrets, logs. */
  dataDir: string;
  onProgress?: (event: StackEvent) => void;
  /** A service whose address it names is used as it is and not started. Default: none is named. */
  environment?: NodeJS.ProcessEnv;
  /** How long a service of the environment gets to answer; default 15 s. */
  externalWithinMs?: number;
  /** Temporal's web pages; default true. */
  temporalUi?: boolean;
  /** Aborts a start that is under way: what was started is stopped, and the reason is thrown. */
  signal?: AbortSignal;
}

export interface Stack {
  /** What every part of Sonar is given. */
  readonly env: StackEnvironment;
  readonly temporalUiUrl: string | undefined;
  readonly services: readonly RunningService[];
  /** Runs a role: started again with backoff when it ends, stopped before the services, in reverse order of start. */
  supervise(spec: RoleSpec): Promise<SupervisedProcess>;
  /** Stops roles, then services, then the guard. Bounded; may be called again. */
  stop(): Promise<void>;
}

/**
 * Brings the four services up, in parallel, on loopback, or uses those that the environment names. When one fails, what
 * was started is stopped again. Throws a StackError that names the service and the ways out, or the abort's reason.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const onProgress = options.onProgress ?? (() => undefined);
  const environment = options.environment ?? {};
  const directory = openDataDirectory(options.dataDir);
  const file = readTemporalDevFile();
  const lock = await lockDataDirectory(directory.root);
  const undo: (() => Promise<void> | void)[] = [() => lock.release()];
  const failure = new AbortController();
  const signal = AbortSignal.any([failure.signal, ...(options.signal ? [options.signal] : [])]);
  const stop = once(async () => {
    failure.abort(new StackError('aborted', 'the stack is being stopped'));
    const faults: unknown[] = [];
    for (const step of undo.toReversed()) {
      try {
        await step();
      } catch (fault) {
        faults.push(fault); // the other steps are owed all the same
      }
    }
    if (faults.length > 0) throw faults[0];
  });
  try {
    for (const left of leftLedgers(directory.runs)) {
      const ended = await endRun(left);
      if (ended.length > 0)
        onProgress({
          service: 'stack',
          state: 'stopped',
          detail: `left by an earlier run: ${ended.join(', ')}`,
        });
    }
    const secrets = loadSecrets(directory.root);
    const reservation = await reservePorts(directory.root, fixedPorts(file, environment));
    undo.push(() => reservation.release());
    for (const detail of reservation.moved) onProgress({ service: 'stack', state: 'starting', detail });
    const ledger = new ProcessLedger(directory.runs, randomUUID());
    // Finds what a role or a service started outside its own group, too.
    undo.push(async () => void (await endRun(ledger.file)));
    const guard = launchGuard(ledger.file);
    undo.push(() => guard.dismiss());
    const processes = new ProcessGroup(ledger, onProgress);
    undo.push(() => processes.stopTogether());
    const roles = new ProcessGroup(ledger, onProgress);
    undo.push(() => roles.stopInReverse());

    const started = await allOrAbort(
      failure,
      serviceNames.map((name) =>
        startService(name, {
          directory,
          secrets,
          signal,
          environment,
          externalWithinMs: options.externalWithinMs ?? 15_000,
          onProgress,
          processes,
          ports: reservation.ports,
          temporal: { file, ui: options.temporalUi ?? true },
          cache: cacheDirectory(process.env),
          downloadEnvironment: { ...process.env, [runVariable]: ledger.runId },
        }),
      ),
    );
    signal.throwIfAborted();
    const masterKeys = environment['SONAR_MASTER_KEYS'] || secrets.masterKeys;
    const env = mergedEnvironment(masterKeys, started);
    const services = started.map(({ service }) => service);
    const ownTemporal = services.some(({ name, external }) => name === 'temporal' && !external);
    return {
      env,
      services,
      temporalUiUrl:
        ownTemporal && (options.temporalUi ?? true)
          ? `http://127.0.0.1:${reservation.ports.temporalUi}`
          : undefined,
      supervise: (spec) => superviseRole(spec, roles, directory, failure.signal),
      stop,
    };
  } catch (fault) {
    await stop();
    throw fault;
  }
}

/** Waits for all; the first fault aborts the others, which are waited for, and is thrown. */
async function allOrAbort<Result>(failure: AbortController, work: Promise<Result>[]): Promise<Result[]> {
  try {
    return await Promise.all(work);
  } catch (fault) {
    failure.abort(fault);
    await Promise.allSettled(work);
    throw fault;
  }
}

function fixedPorts(
  file: TemporalDevFile,
  environment: NodeJS.ProcessEnv,
): Parameters<typeof reservePorts>[1] {
  if (externalService('temporal' satisfies ServiceName, environment)) return {};
  const { frontend, http, metrics, ui } = file.ports;
  return {
    ...(frontend !== 'auto' && { temporalFrontend: frontend }),
    ...(http !== 'auto' && { temporalHttp: http }),
    ...(metrics !== 'auto' && { temporalMetrics: metrics }),
    ...(ui !== 'auto' && { temporalUi: ui }),
  };
}

/** Each service brings its own part; the four of them make the whole. */
function mergedEnvironment(
  masterKeys: string,
  started: { env: Partial<StackEnvironment> }[],
): StackEnvironment {
  const whole: Partial<StackEnvironment> = { SONAR_MASTER_KEYS: masterKeys };
  for (const { env } of started) Object.assign(whole, env);
  return whole as StackEnvironment;
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work();
    return running;
  };
}
