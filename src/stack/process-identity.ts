import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/**
 * A process that a recycled pid cannot be mistaken for. `startedAt` is opaque: boot and kernel ticks on Linux, the
 * start date elsewhere.
 */
export interface ProcessIdentity {
  pid: number;
  startedAt: string;
}

interface KernelStat {
  state: string;
  group: number;
  startTicks: string;
}

const onLinux = process.platform === 'linux';
let bootId: string | undefined;

function currentBoot(): string {
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return bootId;
}

function readKernelStat(pid: number): KernelStat | undefined {
  let line: string;
  try {
    line = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the program's name in parentheses and may hold anything, spaces and parentheses too.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const [state, , group] = fields;
  const startTicks = fields[19];
  if (state === undefined || group === undefined || startTicks === undefined) return undefined;
  return { state, group: Number(group), startTicks };
}

/** A zombie has ended: it holds nothing and waits for its parent only (for ever, in a container without a reaper). */
function hasEnded(stat: KernelStat): boolean {
  return stat.state === 'Z' || stat.state === 'X';
}

/** The identity of the live process `pid`, or undefined when there is none. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  if (onLinux) {
    const stat = readKernelStat(pid);
    return stat && !hasEnded(stat) ? { pid, startedAt: `${currentBoot()}:${stat.startTicks}` } : undefined;
  }
  try {
    const startedAt = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return startedAt ? { pid, startedAt } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether exactly this process (not another one with its pid) is alive. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startedAt === identity.startedAt;
}

function listPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Whether the process group has a live member. */
export function groupIsAlive(group: number): boolean {
  if (!signalGroup(group, 0)) return false;
  if (!onLinux) return true;
  return listPids().some((pid) => {
    const stat = readKernelStat(pid);
    return stat !== undefined && stat.group === group && !hasEnded(stat);
  });
}

/** The live processes that carry `assignment` (`NAME=value`) in the environment they were started with; Linux only. */
export function findByEnvironment(assignment: string): ProcessIdentity[] {
  if (!onLinux) return [];
  return listPids().flatMap((pid) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      const identity = environment.includes(assignment) ? identifyProcess(pid) : undefined;
      return identity ? [identity] : [];
    } catch {
      return []; // gone, or another user's
    }
  });
}

/** Sends `signal` to a process; false when there is none. */
export function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code === 'EPERM') return true;
    return false;
  }
}

/** Sends `signal` to every member of a process group; false when it has none. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  return signalProcess(-group, signal);
}
