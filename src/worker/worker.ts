// The tag worker: pulls commands from the broker, runs them, and tells the api. It reaches nothing else but
// presigned URLs. How it ends: drained by `stop`, by its lifetime or because its machine will be taken, at once by a
// second `stop`, or by Sonar's word.
import type { IncarnationId } from '#sonar/contracts/ids.ts';
import { messageVersion, type PulseAnswer, type Registration } from '#sonar/contracts/worker-api.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import type { Service } from '#sonar/platform/service.ts';
import { createPuller, type Puller } from '#sonar/transport/amqp-consumer.ts';
import { createApiClient } from './api-client.ts';
import { type AttemptsInHand, createAttemptsInHand } from './attempts-in-hand.ts';
import type { WorkerConfig } from './config.ts';
import { makeDirectories, type WorkerDirectories } from './directories.ts';
import { createDrainBound, type DrainBound, type DrainEnd, drainOfWarning } from './drain-bound.ts';
import { createGate, untilAborted, within } from './gate.ts';
import { takeLock } from './lock.ts';
import { clearDirectories, endPredecessorProcesses, resendStoredResults } from './predecessor.ts';
import { createPulses, type Pulses } from './pulses.ts';
import { refusal, registerWorker } from './registration.ts';
import { createSharedFiles } from './shared-files.ts';
import { runSlot } from './slots.ts';
import { createSpawner } from './spawner.ts';
import { createSpotMetadata } from './spot-metadata.ts';
import { type SpotWarning, watchSpot } from './spot-watch.ts';
import type { WorkerParts } from './worker-parts.ts';

export type WorkerEnd =
  | { reason: 'stopped' | 'max_lifetime' | 'spot' }
  /** Another machine registered this name. */
  | { reason: 'replaced' }
  | { reason: 'fault'; error: SonarError };

/** What the process ends with, so that a supervisor can tell an end it should not undo. */
export const workerExitCodes = { stopped: 0, max_lifetime: 0, spot: 0, fault: 1, replaced: 7 } as const;

export interface TagWorker extends Service {
  readonly incarnationId: string;
  /** Resolves, never rejects, when nothing of the worker runs any more. */
  readonly done: Promise<WorkerEnd>;
}

/** Beyond the grace of its command, for an attempt to be ended and released, or its result to be sent. */
const releaseBoundMs = 15_000;
const forcedBoundMs = 5_000;
/** How long a start waits to hear whether the machine is about to go: longer than one look may take. */
const firstLookMs = 5_000;

/**
 * `puller` is for tests. A first `stop` drains: no new work, `drainMs` for what runs, then end and release. A second
 * one ends and releases at once. `start` throws what makes a start pointless: a refused token, a name in use. On a
 * machine that is about to be taken it registers nothing, and `done` says `spot`.
 */
export function createWorker(config: WorkerConfig, parts: { log: Logger; puller?: Puller }): TagWorker {
  const incarnationId = newId<IncarnationId>();
  const log = parts.log.child({ worker: config.name, incarnationId });
  const pulling = new AbortController();
  const forcing = new AbortController();
  /** The end of everything: calls, waits, pulses. */
  const letGo = new AbortController();
  const gate = createGate();
  const done = Promise.withResolvers<WorkerEnd>();
  const api = createApiClient({
    apiUrl: config.apiUrl,
    token: config.token,
    log,
    signal: letGo.signal,
    answered: () => gate.open(),
  });
  const registration: Registration = {
    v: messageVersion,
    name: config.name,
    incarnationId,
    location: config.location,
    image: config.image,
    tags: config.tags,
    slots: config.slots,
  };
  let live: { attempts: AttemptsInHand; pulses: Pulses } | null = null;
  let lifetime: NodeJS.Timeout | undefined;
  let bound: DrainBound | null = null;
  let ending: Promise<void> | null = null;
  let stops = 0;
  const cleanups: (() => Promise<unknown>)[] = [async () => api.close()];

  async function cleanUp(): Promise<void> {
    for (let cleanup = cleanups.pop(); cleanup !== undefined; cleanup = cleanups.pop())
      await cleanup().catch((error: unknown) =>
        log.error({ operation: 'worker_stop_fault', reason: messageOf(error) }, 'stop fault'),
      );
  }

  async function start(): Promise<void> {
    const directories = await makeDirectories(config.directory, config.name);
    const lock = await takeLock(directories.lock, config.name);
    cleanups.push(() => lock.release());
    endPredecessorProcesses(directories, log);
    await resendStoredResults(directories, api, config, log, pulling.signal);
    if (pulling.signal.aborted) return;
    await clearDirectories(directories, log);
    await watchMachine();
    if (pulling.signal.aborted) return;
    const answer = await registerWorker(registration, api, config, log, pulling.signal);
    if (answer === null) return;
    log.info({ operation: 'worker_registered', tags: config.tags, slots: config.slots }, 'registered');
    open(directories, answer);
  }

  /** Resolves after the first look. */
  async function watchMachine(): Promise<void> {
    if (config.metadataUrl === null) return;
    const first = Promise.withResolvers<void>();
    const watching = watchSpot(
      createSpotMetadata(config.metadataUrl),
      { warned: onSpotWarning, looked: first.resolve },
      { everyMs: config.metadataEveryMs, log, signal: letGo.signal },
    );
    cleanups.push(() => watching);
    await within(first.promise, firstLookMs);
  }

  function onSpotWarning(warning: SpotWarning): void {
    const end = drainOfWarning(warning, config.termGraceMs, Date.now());
    bound?.tighten(end);
    void finish({ reason: 'spot' }, end);
  }

  function open(directories: WorkerDirectories, answer: { secret: string; pulseEveryMs: number }): void {
    const puller = parts.puller ?? createPuller(config.amqpUrl, config.tags, { log });
    const spawner = createSpawner(directories, log);
    spawner.prepare();
    const pulses = createPulses(registration, api, log, {
      state,
      answered: onPulseAnswer,
      refused: onPulseRefused,
    });
    const shared: WorkerParts = {
      config,
      shared: createSharedFiles(directories.shared),
      incarnationId,
      directories,
      api,
      spawner,
      gate,
      log,
      signal: letGo.signal,
      draining: pulling.signal,
      pulseSequence: () => pulses.sequence(),
    };
    const attempts = createAttemptsInHand(shared);
    const slots = Array.from({ length: config.slots }, () =>
      runSlot(puller, attempts, shared, pulling.signal),
    );
    const pulsing = pulses.run(answer, letGo.signal);
    live = { attempts, pulses };
    // Run in reverse: no command outlives the spawner, no message the connection, and nothing the lock.
    cleanups.push(
      () => Promise.all([...slots, pulsing]),
      () => within(attempts.drained(), forcedBoundMs),
      () => puller.close(),
      () => spawner.stop(),
    );
    if (config.maxLifetimeMs !== undefined)
      lifetime = setTimeout(
        () => void finish({ reason: 'max_lifetime' }, drainFor('max_lifetime')),
        config.maxLifetimeMs,
      );
  }

  function state() {
    const draining = pulling.signal.aborted;
    const attempts = live?.attempts;
    const pulls = !draining && gate.isOpen && (attempts?.hasRoom() ?? true);
    return {
      freeSlots: pulls ? Math.max(0, config.slots - (attempts?.busy() ?? 0)) : 0,
      draining,
      attempts: attempts?.ids() ?? [],
    };
  }

  function onPulseAnswer(answer: PulseAnswer): void {
    for (const attemptId of answer.cancel) live?.attempts.end(attemptId, { kind: 'cancel' });
    for (const attemptId of answer.superseded) live?.attempts.end(attemptId, { kind: 'superseded' });
    if (!answer.replaced) return;
    log.error(
      { operation: 'worker_replaced' },
      'another process registered this name: every command is ended',
    );
    void abandon({ reason: 'replaced' });
  }

  function onPulseRefused(status: number, detail: string): void {
    const error = refusal(status, detail, config);
    log.error(
      { operation: 'worker_refused', status, reason: error.message },
      'the api takes no pulse any more',
    );
    void abandon({ reason: 'fault', error });
  }

  /** At once, without a word to Sonar: it has taken everything from this incarnation already. */
  async function abandon(end: WorkerEnd): Promise<void> {
    pulling.abort();
    letGo.abort();
    await finish(end, drainFor('shutdown'));
  }

  const drainFor = (reason: DrainEnd['reason']): DrainEnd => ({
    reason,
    forMs: config.drainMs,
    graceMs: config.termGraceMs,
  });

  function finish(end: WorkerEnd, drainEnd: DrainEnd): Promise<void> {
    ending ??= drainAndClose(end, drainEnd);
    return ending;
  }

  async function drainAndClose(end: WorkerEnd, drainEnd: DrainEnd): Promise<void> {
    clearTimeout(lifetime);
    pulling.abort();
    // Whoever asks for the end while the worker starts is heard when the start has noticed.
    await starting?.catch(() => undefined);
    bound = createDrainBound(drainEnd);
    if (live !== null && !letGo.signal.aborted) await drain(live.attempts, live.pulses, bound);
    bound.clear();
    letGo.abort();
    await cleanUp();
    log.info({ operation: 'worker_ended', reason: end.reason }, 'worker ended');
    done.resolve(end);
  }

  async function drain(attempts: AttemptsInHand, pulses: Pulses, until: DrainBound): Promise<void> {
    log.info(
      { operation: 'worker_draining', reason: until.end.reason, attempts: attempts.ids().length },
      'draining',
    );
    pulses.now();
    const over = AbortSignal.any([until.signal, forcing.signal, letGo.signal]);
    await untilAborted(attempts.drained(), over);
    if (letGo.signal.aborted) return;
    const { reason, graceMs } = until.end;
    attempts.endAll({ kind: 'release', reason }, forcing.signal.aborted ? 0 : graceMs);
    // Forced meanwhile: the grace is over for what still runs.
    forcing.signal.addEventListener('abort', () => attempts.endAll({ kind: 'release', reason }, 0), {
      once: true,
    });
    await within(attempts.drained(), forcing.signal.aborted ? forcedBoundMs : graceMs + releaseBoundMs);
  }

  let starting: Promise<void> | null = null;
  return {
    name: `worker ${config.name}`,
    incarnationId,
    done: done.promise,
    async start() {
      try {
        starting = start();
        await starting;
      } catch (error) {
        letGo.abort();
        await cleanUp();
        const fault = error as SonarError;
        done.resolve({
          reason: 'fault',
          error:
            fault.name === 'SonarError'
              ? fault
              : new SonarError('internal', messageOf(error), { cause: error }),
        });
        throw error;
      }
    },
    async stop() {
      stops += 1;
      if (stops > 1) forcing.abort();
      // A drain for another reason may have no bound, or a later one.
      bound?.tighten(drainFor('shutdown'));
      await finish({ reason: 'stopped' }, drainFor('shutdown'));
    },
  };
}
