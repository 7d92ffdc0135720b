import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs, pause } from '#sonar/platform/wait.ts';
import { faultOfProcess } from './process-fault.ts';
import { groupIsAlive, signalGroup } from './process-identity.ts';
import { type ProcessKind, type ProcessLedger, runVariable } from './process-ledger.ts';
import { lastLines, openLog } from './process-log.ts';
import type { StackError } from './stack-error.ts';

export interface ProcessSpec {
  name: string;
  kind: ProcessKind;
  command: string;
  args: readonly string[];
  /** All that the process gets, besides what `baseEnvironment` gives to every child. */
  env: NodeJS.ProcessEnv;
  cwd: string;
  log: string;
  stopSignal: NodeJS.Signals;
  litter: readonly string[];
  /** From the stop signal until SIGKILL goes to the whole group. */
  graceMs: number;
  /** Whether the process does its work now, judged by its protocol; a throw means not yet. */
  ready: (signal: AbortSignal) => Promise<void>;
  readyWithinMs: number;
  /** What to do when it does not come up, besides reading its log. */
  waysOut: readonly string[];
  /** Told when it ends by itself, when it serves again, and never during a stop. */
  onChange: (state: 'stopped' | 'ready', detail: string) => void;
}

const firstRestartMs = 200;
const slowestRestartMs = 15_000;
/** A process that lived this long has recovered: its next restart is prompt again. */
const steadyAfterMs = 30_000;
const probeEveryMs = 50;
const killedWithinMs = 3_000;
/** Nothing depends yet on what was never ready, and a runtime may ignore the signal until it has booted. */
const unreadyGraceMs = 2_000;
const quotedLines = 12;

/** What every child gets: no more than programs need to find others, a home and a language. */
export function baseEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  return {
    PATH: PATH ?? '/usr/local/bin:/usr/bin:/bin',
    HOME: HOME ?? '/',
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    ...(TMPDIR && { TMPDIR }),
  };
}

/**
 * One process of a stack: leader of its own group, written down in the ledger, its output in a log, started again with
 * backoff when it ends by itself after it was ready once.
 */
export class ManagedProcess {
  readonly spec: ProcessSpec;
  readonly #ledger: ProcessLedger;
  readonly #stopping = new AbortController();
  #child: ChildProcess | undefined;
  #ended: Promise<string> = Promise.resolve('not started');
  #restarts = 0;
  #logStart = 0;
  #wasReady = false;
  #keeper: Promise<void> = Promise.resolve();

  constructor(spec: ProcessSpec, ledger: ProcessLedger) {
    this.spec = spec;
    this.#ledger = ledger;
  }

  /** Undefined while it is down between two lives. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Resolves when it is ready. Throws `service_failed` with the end of its log when it ends first or takes too long. */
  async start(signal: AbortSignal): Promise<void> {
    this.#spawn();
    await this.#awaitReady(AbortSignal.any([signal, this.#stopping.signal]));
    this.#keeper = this.#keepUp();
  }

  /** Ends it and its group: stop signal, grace, SIGKILL. Bounded, never throws, may be called twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const child = this.#child;
    if (child) {
      child.kill(this.spec.stopSignal);
      const graceMs = this.#wasReady ? this.spec.graceMs : Math.min(this.spec.graceMs, unreadyGraceMs);
      const patience = new AbortController();
      await Promise.race([
        this.#ended,
        delay(graceMs, undefined, { signal: patience.signal }).catch(() => undefined),
      ]);
      patience.abort();
      if (child.pid !== undefined) await this.#endGroup(child.pid);
    }
    await this.#keeper;
  }

  #spawn(): void {
    const { command, args, cwd, env, log } = this.spec;
    const output = openLog(log);
    this.#logStart = output.length;
    this.#wasReady = false;
    let child: ChildProcess;
    try {
      child = spawn(command, args, {
        cwd,
        detached: true,
        stdio: ['ignore', output.descriptor, output.descriptor],
        env: { ...baseEnvironment(), ...env, [runVariable]: this.#ledger.runId },
      });
    } finally {
      closeSync(output.descriptor);
    }
    this.#child = child;
    if (child.pid !== undefined) this.#ledger.add(child.pid, this.spec);
    const { promise, resolve } = Promise.withResolvers<string>();
    child.on('error', (fault) => {
      if (child.pid === undefined) resolve(`could not be run: ${fault.message}`);
    });
    child.on('exit', (code, endSignal) =>
      resolve(endSignal ? `was ended by ${endSignal}` : `exited with ${code}`),
    );
    this.#ended = promise.finally(() => {
      if (this.#child === child) this.#child = undefined;
    });
  }

  async #awaitReady(signal: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    const ended = this.#ended.then((how) => ({ how }));
    let lastFault: unknown;
    while (performance.now() - startedAt < this.spec.readyWithinMs) {
      signal.throwIfAborted();
      const probe = this.spec.ready(signal).then(
        () => 'ready' as const,
        (fault: unknown) => {
          lastFault = fault;
          return 'not yet' as const;
        },
      );
      const outcome = await Promise.race([probe, ended]);
      if (outcome === 'ready') {
        this.#wasReady = true;
        return;
      }
      if (outcome !== 'not yet') throw this.#fault(outcome.how);
      await Promise.race([pause(probeEveryMs, signal), ended]);
    }
    const seconds = Math.round(this.spec.readyWithinMs / 1000);
    throw this.#fault(`was not ready after ${seconds} s`, lastFault);
  }

  #fault(what: string, cause?: unknown): StackError {
    const tail = lastLines(this.spec.log, this.#logStart, quotedLines);
    return faultOfProcess(this.spec, what, tail, cause);
  }

  async #keepUp(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; ; failures += 1) {
      const aliveSince = performance.now();
      const leader = this.#child?.pid;
      const how = await this.#ended;
      if (signal.aborted) return;
      // What the dead leader left in its group would hold ports and files of its successor.
      if (leader !== undefined) await this.#endGroup(leader);
      if (performance.now() - aliveSince > steadyAfterMs) failures = 0;
      const waitMs = backoffMs(failures, firstRestartMs, slowestRestartMs);
      this.spec.onChange('stopped', `${how}; restarting in ${waitMs / 1000} s`);
      await pause(waitMs, signal);
      if (signal.aborted) return;
      this.#restarts += 1;
      // For want of descriptors or of room for its log it may not even start: then the next round tries again.
      this.#ended = Promise.resolve('could not be started');
      try {
        this.#spawn();
        await this.#awaitReady(signal);
        this.spec.onChange('ready', `restarted ${this.#restarts}×`);
      } catch (fault) {
        if (signal.aborted) return;
        // It may be alive and useless: end it, so that the next round starts a fresh one.
        this.#child?.kill('SIGKILL');
        this.spec.onChange('stopped', (fault as Error).message);
      }
    }
  }

  async #endGroup(group: number): Promise<void> {
    const until = performance.now() + killedWithinMs;
    while (groupIsAlive(group) && performance.now() < until) {
      signalGroup(group, 'SIGKILL');
      await delay(10);
    }
    for (const file of this.spec.litter) removed(file);
    this.#ledger.remove(group);
  }
}

/** Its successor makes the file anew, or says why it cannot. */
function removed(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {}
}
