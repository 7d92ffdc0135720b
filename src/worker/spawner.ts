// The worker's side of the spawn helper: forks it, forks another when it dies, and knows what ran under it.
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs, pause } from '#sonar/platform/wait.ts';
import { endGroup, endProcessesWith, endRecordedGroups, tracesOf } from './process-trace.ts';
import type { CommandEnd, FromHelper, SpawnRequest } from './spawn-protocol.ts';

/** `helper_lost`: there is no helper (any more); its commands have been killed, and what they did is unknown. */
export type RunEnd = CommandEnd | { kind: 'helper_lost' };

export interface RunningCommand {
  readonly ended: Promise<RunEnd>;
  /** SIGTERM to the group, SIGKILL after `graceMs`. */
  end(graceMs: number): void;
}

export interface Spawner {
  /** Process id of the helper; null when there is none at the moment. */
  readonly helperPid: number | null;
  /** Forks the helper before it is needed; `run` would do it too. */
  prepare(): void;
  run(
    request: Omit<SpawnRequest, 'type' | 'groups' | 'work'>,
    onSpawned: (pid: number) => void,
  ): RunningCommand;
  /** Kills whatever runs and ends the helper. */
  stop(): Promise<void>;
}

const helperPath = fileURLToPath(new URL('./spawn-helper-process.ts', import.meta.url));
const stopTimeoutMs = 5_000;
/** How long a command that no helper could be forked for holds its slot: else its task would go round at once. */
const forkFirstMs = 1_000;
const forkMaxMs = 30_000;
/** In the helper's environment alone: a command gets one of its own with `exec`. */
const helperVariable = 'SONAR_SPAWN_HELPER';

/** `groups` is the folder in which process groups are recorded, `work` the one with the folders of commands. */
export function createSpawner(at: { groups: string; work: string }, log: Logger): Spawner {
  const { groups, work } = at;
  interface Run {
    group: { pid: number; identity: string } | null;
    onSpawned: (pid: number) => void;
    resolve: (end: RunEnd) => void;
  }
  const runs = new Map<string, Run>();
  let helper: ChildProcess | null = null;
  let gone: Promise<void> = Promise.resolve();
  let forkFaults = 0;
  const stopping = new AbortController();

  /** Null when no process is to be had. */
  function forkHelper(mark: string): ChildProcess | null {
    let reason = 'no process';
    try {
      const child = fork(helperPath, [], {
        // The token and the broker's password are in this process's environment; a command must find neither in
        // its parent's.
        env: { PATH: process.env.PATH ?? '', [helperVariable]: mark },
        execArgv: ['--disable-warning=ExperimentalWarning'],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        // Out of reach of the terminal's signals to the worker's group.
        detached: true,
      });
      child.on('error', (error) =>
        log.error({ operation: 'spawn_helper_failed', reason: error.message }, 'spawn helper failed'),
      );
      // Without an id it never ran, and no `exit` will come.
      if (child.pid !== undefined) return child;
    } catch (error) {
      reason = messageOf(error);
    }
    log.error({ operation: 'spawn_helper_missing', reason }, 'no spawn helper could be started');
    return null;
  }

  function ensureHelper(): ChildProcess | null {
    if (helper !== null) return helper;
    const mark: string = randomUUID();
    const child = forkHelper(mark);
    if (child === null) return null;
    helper = child;
    child.on('message', (message: FromHelper) => {
      const run = runs.get(message.id);
      if (message.type === 'spawned') {
        if (run === undefined) return;
        run.group = { pid: message.pid, identity: message.identity };
        run.onSpawned(message.pid);
      } else {
        runs.delete(message.id);
        run?.resolve(message.end);
      }
    });
    gone = new Promise((resolve) => {
      child.once('exit', (exitCode, signal) => {
        lost(child, mark, { exitCode, signal });
        resolve();
      });
    });
    return child;
  }

  function lost(
    child: ChildProcess,
    mark: string,
    end: { exitCode: number | null; signal: string | null },
  ): void {
    if (helper === child) helper = null;
    const orphans = [...runs.values()];
    runs.clear();
    if (!stopping.signal.aborted)
      log.error({ operation: 'spawn_helper_lost', ...end, commands: orphans.length }, 'spawn helper lost');
    // The end of a command is reported only when nothing of it runs any more. What is known here needs no disk.
    for (const { group } of orphans) if (group !== null) endGroup(group.pid, group.identity);
    endRecordedGroups(groups);
    // A helper that was killed between `fork` and its record left a group that no file names: before `exec` it shows
    // the helper's environment, after it the command's. And what left its group has nobody who looks for it now.
    endProcessesWith([`${helperVariable}=${mark}`, ...tracesOf(`${work}/`)]);
    for (const run of orphans) run.resolve({ kind: 'helper_lost' });
  }

  function withoutHelper(): RunningCommand {
    const ending = new AbortController();
    const over = AbortSignal.any([ending.signal, stopping.signal]);
    const waitMs = backoffMs(forkFaults, forkFirstMs, forkMaxMs);
    forkFaults += 1;
    return {
      ended: pause(waitMs, over).then(() => ({ kind: 'helper_lost' })),
      end: () => ending.abort(),
    };
  }

  return {
    get helperPid() {
      return helper?.pid ?? null;
    },
    prepare: () => void ensureHelper(),
    run(request, onSpawned) {
      // A helper forked now would outlive the worker's stop.
      if (stopping.signal.aborted)
        return { ended: Promise.resolve({ kind: 'helper_lost' }), end: () => undefined };
      const child = ensureHelper();
      if (child === null) return withoutHelper();
      forkFaults = 0;
      const { promise, resolve } = Promise.withResolvers<RunEnd>();
      runs.set(request.id, { group: null, onSpawned, resolve });
      // A helper that died this moment is handled by its exit.
      child.send({ type: 'spawn', groups, work, ...request }, () => undefined);
      return {
        ended: promise,
        end(graceMs) {
          if (child.connected) child.send({ type: 'end', id: request.id, graceMs }, () => undefined);
        },
      };
    },
    async stop() {
      stopping.abort();
      const child = helper;
      if (child === null) return;
      child.disconnect();
      const bound = new AbortController();
      const inTime = await Promise.race([
        gone.then(() => true),
        pause(stopTimeoutMs, bound.signal).then(() => false),
      ]);
      bound.abort();
      if (inTime) return;
      child.kill('SIGKILL');
      await gone;
    },
  };
}
