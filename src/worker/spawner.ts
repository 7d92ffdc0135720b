// The worker's side of the spawn helper: forks it, forks another when it dies, and knows what ran under it.
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Logger } from '#sonar/platform/logger.ts';
import { pause } from '#sonar/platform/wait.ts';
import { endProcessesWith, endRecordedGroups } from './process-trace.ts';
import type { CommandEnd, FromHelper, SpawnRequest } from './spawn-protocol.ts';

/** `helper_lost`: the helper was killed; its commands have been killed too, and what they did is unknown. */
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
  run(request: Omit<SpawnRequest, 'type' | 'groups'>, onSpawned: (pid: number) => void): RunningCommand;
  /** Kills whatever runs and ends the helper. */
  stop(): Promise<void>;
}

const helperPath = fileURLToPath(new URL('./spawn-helper-process.ts', import.meta.url));
const stopTimeoutMs = 5_000;
/** In the helper's environment alone: a command gets one of its own with `exec`. */
const markVariable = 'SONAR_SPAWN_HELPER';

/** `groups` is the folder in which process groups are recorded. */
export function createSpawner(groups: string, log: Logger): Spawner {
  interface Run {
    cwd: string;
    onSpawned: (pid: number) => void;
    resolve: (end: RunEnd) => void;
  }
  const runs = new Map<string, Run>();
  let helper: ChildProcess | null = null;
  let gone: Promise<void> = Promise.resolve();
  let stopping = false;

  function ensureHelper(): ChildProcess {
    if (helper !== null) return helper;
    const mark = `${markVariable}=${randomUUID()}`;
    const child = fork(helperPath, [], {
      // The token and the broker's password are in this process's environment; a command must find neither in
      // its parent's.
      env: { PATH: process.env.PATH ?? '', [markVariable]: mark.slice(mark.indexOf('=') + 1) },
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      // Out of reach of the terminal's signals to the worker's group.
      detached: true,
    });
    helper = child;
    child.on('message', (message: FromHelper) => {
      const run = runs.get(message.id);
      if (message.type === 'spawned') run?.onSpawned(message.pid);
      else {
        runs.delete(message.id);
        run?.resolve(message.end);
      }
    });
    child.on('error', (error) =>
      log.error({ operation: 'spawn_helper_failed', reason: error.message }, 'spawn helper failed'),
    );
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
    if (!stopping)
      log.error({ operation: 'spawn_helper_lost', ...end, commands: orphans.length }, 'spawn helper lost');
    // The end of a command is reported only when nothing of it runs any more.
    endRecordedGroups(groups);
    // A helper that was killed between `fork` and its record left a group that no file names: before `exec` it shows
    // the helper's environment, after it the command's.
    const homes = new Set(orphans.map(({ cwd }) => `HOME=${cwd}`));
    endProcessesWith((variable) => variable === mark || homes.has(variable));
    for (const run of orphans) run.resolve({ kind: 'helper_lost' });
  }

  return {
    get helperPid() {
      return helper?.pid ?? null;
    },
    prepare: () => void ensureHelper(),
    run(request, onSpawned) {
      // A helper forked now would outlive the worker's stop.
      if (stopping) return { ended: Promise.resolve({ kind: 'helper_lost' }), end: () => undefined };
      const { promise, resolve } = Promise.withResolvers<RunEnd>();
      runs.set(request.id, { cwd: request.cwd, onSpawned, resolve });
      const child = ensureHelper();
      // A helper that died this moment is handled by its exit.
      child.send({ type: 'spawn', groups, ...request }, () => undefined);
      return {
        ended: promise,
        end(graceMs) {
          if (child.connected) child.send({ type: 'end', id: request.id, graceMs }, () => undefined);
        },
      };
    },
    async stop() {
      stopping = true;
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
