// Sonar's own processes under torture: each with links of its own to what it reaches, and started again when it ends.
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { SupervisedProcess } from '#sonar/stack/stack.ts';
import type { CallbackRelay } from './callback-relay.ts';
import type { Link } from './link.ts';

export type RoleKind = 'api' | 'reconciler' | 'finalizer' | 'publisher';
export type ServiceName = 'postgres' | 'rabbitmq' | 's3' | 'temporal';

export interface Member {
  readonly name: string;
  readonly kind: RoleKind | 'worker';
  readonly process: SupervisedProcess;
  /** By the service they lead to. */
  readonly links: Partial<Record<ServiceName, Link>>;
  /** Says how far its clock is off. */
  readonly clock: string;
  /** Of a worker: its way to the apis. */
  readonly relay: CallbackRelay | undefined;
}

/** False when it had ended before. */
export function signalProcess(pid: number | undefined, signal: NodeJS.Signals): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** The helper that starts a worker's commands; undefined while there is none. */
export function helperOf(worker: Member): number | undefined {
  return worker.process.pid === undefined
    ? undefined
    : childrenOf(worker.process.pid).find((pid) => commandLine(pid).includes('spawn-helper-process'));
}

/** Whatever runs below a process, itself first. */
export function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)];
}

/** One file to read, not all processes: whoever looks often must not hold up the links of this process. */
function childrenOf(parent: number): number[] {
  try {
    return readdirSync(`/proc/${parent}/task`).flatMap((thread) =>
      readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

/** Null when there is no such process, or it is a zombie. */
export function statOf(pid: number): { startTicks: string } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : { startTicks: fields[19] ?? '' };
  } catch {
    return null;
  }
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** Seconds since the machine started: the clock that commands write into the ledger, too. */
export const uptimeSeconds = (): number => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);

/**
 * Stops processes and lets them go on after a time. Who lets them go on is a process of its own: a torture that is
 * killed meanwhile leaves nothing stopped for ever.
 */
export function stopFor(pids: readonly number[], ms: number): ChildProcess {
  for (const pid of pids) signalProcess(pid, 'SIGSTOP');
  const thaw = spawn('/bin/sh', ['-c', `sleep ${ms / 1000}; kill -CONT ${pids.join(' ')} 2>/dev/null`], {
    detached: true,
    stdio: 'ignore',
  });
  thaw.unref();
  return thaw;
}
