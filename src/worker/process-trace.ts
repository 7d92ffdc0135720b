// Which processes are whose. A process id alone proves nothing, since ids are used again: the start time goes with
// it, and the boot that it counts from. No import beyond Node's own: the spawn helper must stay small. Nothing here
// throws for what the disk or a missing descriptor does: to end the rest matters more.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Set last in the environment of every command, whatever its definition sets: the folder of its attempt. */
export const markVariable = 'SONAR_ATTEMPT_FOLDER';

/** A text that differs between two processes that had the same id; null when there is no such process. */
export function processStart(pid: number): string | null {
  if (process.platform === 'linux') {
    try {
      const { state, start } = statOf(pid);
      // A zombie has ended: only its parent has not looked yet.
      return state === 'Z' ? null : start;
    } catch {
      return null;
    }
  }
  try {
    const started = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return started.trim() || null;
  } catch {
    return null;
  }
}

/** @throws where it cannot be read. */
function statOf(pid: number): { state: string | null; start: string | null } {
  // Counted after the command's name, which is in parentheses and may hold anything; the start is field 22.
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? null, start: fields[19] ?? null };
}

/** Signals a whole process group; false when nothing of it is left. */
export function signalGroup(leader: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-leader, signal);
    return true;
  } catch {
    return false;
  }
}

/**
 * Unlike that of any process of another boot, too: a volume may outlive the machine. A zombie has one: its number
 * is still its own.
 */
function processIdentity(pid: number): string | null {
  if (process.platform !== 'linux') return processStart(pid);
  try {
    return `${statOf(pid).start} ${boot()}`;
  } catch {
    return null;
  }
}

let knownBoot: string | undefined;
function boot(): string {
  if (knownBoot === undefined)
    try {
      knownBoot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    } catch {
      // Elsewhere the start time is a date.
      knownBoot = '';
    }
  return knownBoot;
}

/**
 * Puts a new process group on disk, so that a worker that starts after a crash can end it. Returns its identity. A
 * full disk is no fault: that start also looks at what the processes themselves show.
 */
export function recordGroup(directory: string, leader: number): string {
  const identity = processIdentity(leader) ?? '';
  try {
    writeFileSync(join(directory, String(leader)), identity, { mode: 0o600 });
  } catch {
    return identity;
  }
  return identity;
}

export function forgetGroup(directory: string, leader: number): void {
  try {
    rmSync(join(directory, String(leader)), { force: true });
  } catch {
    // What the record says is compared before it is believed.
  }
}

/**
 * Kills a group while its leader is the process that was recorded; false when it is not. Once the leader is gone
 * nothing tells whose the number is by now: what is left of the group is found by what it shows.
 */
export function endGroup(leader: number, recorded: string): boolean {
  const now = processIdentity(leader);
  // There and yet unreadable: this process has no descriptor to read with.
  const isIt = now === null ? recorded !== '' && isThere(leader) : now === recorded;
  return isIt && signalGroup(leader, 'SIGKILL');
}

/** Kills every recorded group whose leader is still the process that was recorded; returns how many. */
export function endRecordedGroups(directory: string): number {
  let ended = 0;
  for (const name of namesIn(directory)) {
    const leader = Number(name);
    try {
      if (
        Number.isInteger(leader) &&
        leader > 1 &&
        endGroup(leader, readFileSync(join(directory, name), 'utf8'))
      )
        ended += 1;
    } catch {
      // No record, whatever it is.
    }
    forgetGroup(directory, leader);
  }
  return ended;
}

/** A process that is being born while `/proc` is read may be missed once, not again and again. */
const maxSweeps = 5;

/**
 * Kills processes by what their environment says of them: those that left their group (a daemon with a session of
 * its own), and those whose group nobody came to record. Children inherit it. `beginnings` are of variables with
 * their values; a process that shows a spared one is left alone. Linux only, and a process that emptied its
 * environment cannot be told. Returns how many were killed.
 */
export function endProcessesWith(
  beginnings: readonly string[],
  isSpared: (variable: string) => boolean = () => false,
): number {
  if (process.platform !== 'linux' || beginnings.length === 0) return 0;
  const ended = new Set<number>();
  for (let sweep = 0; sweep < maxSweeps; sweep += 1) {
    const found = processesWith(beginnings, isSpared);
    if (found.length === 0) break;
    for (const pid of found) if (kill(pid)) ended.add(pid);
  }
  return ended.size;
}

/** How the processes of commands below a path begin: the mark, and HOME, which a command may keep without the mark. */
export const tracesOf = (path: string): string[] => [`${markVariable}=${path}`, `HOME=${path}`];

/** Those whose mark or HOME begins with one of the prefixes. */
export function endProcessesAtHome(...homePrefixes: string[]): number {
  return endProcessesWith(homePrefixes.flatMap(tracesOf));
}

/** Kills what runs in folders of attempts below `work`, but for those of commands that still run. */
export function endStrays(work: string, runs: (folder: string) => boolean): number {
  const beginnings = tracesOf(`${work}/`);
  return endProcessesWith(beginnings, (variable) => {
    const path = variable.slice(variable.indexOf('=') + 1);
    const end = path.indexOf('/', work.length + 1);
    return runs(end === -1 ? path : path.slice(0, end));
  });
}

function processesWith(beginnings: readonly string[], isSpared: (variable: string) => boolean): number[] {
  const found: number[] = [];
  for (const name of namesIn('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    let environment: string;
    try {
      environment = readFileSync(`/proc/${name}/environ`, 'utf8');
    } catch {
      // It ended meanwhile, or belongs to somebody else.
      continue;
    }
    // Nearly every process is none of ours, and this says so at the least cost.
    if (!beginnings.some((beginning) => environment.includes(beginning))) continue;
    const traces = environment
      .split('\0')
      .filter((variable) => beginnings.some((beginning) => variable.startsWith(beginning)));
    if (traces.length > 0 && !traces.some(isSpared)) found.push(pid);
  }
  return found;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch {
    return false;
  }
}
