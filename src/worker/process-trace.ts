// Which processes are whose. A process id alone proves nothing, since ids are used again: the start time goes with
// it. No import beyond Node's own: the spawn helper must stay small.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A text that differs between two processes that had the same id; null when there is no such process. */
export function processStart(pid: number): string | null {
  if (process.platform === 'linux') {
    try {
      // Field 22, counted after the command's name, which is in parentheses and may hold anything.
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      // A zombie has ended: only its parent has not looked yet.
      return fields[0] === 'Z' ? null : (fields[19] ?? null);
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

/** Signals a whole process group; false when nothing of it is left. */
export function signalGroup(leader: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-leader, signal);
    return true;
  } catch {
    return false;
  }
}

/** Puts a new process group on disk, so that a worker that starts after a crash can end it. */
export function recordGroup(directory: string, leader: number): void {
  writeFileSync(join(directory, String(leader)), processStart(leader) ?? '', { mode: 0o600 });
}

export function forgetGroup(directory: string, leader: number): void {
  rmSync(join(directory, String(leader)), { force: true });
}

/** Kills every recorded group whose leader is still the process that was recorded; returns how many. */
export function endRecordedGroups(directory: string): number {
  let ended = 0;
  for (const name of readdirSync(directory)) {
    const leader = Number(name);
    if (Number.isInteger(leader) && leader > 1) {
      const recorded = readFileSync(join(directory, name), 'utf8');
      const now = processStart(leader);
      // A leader that has gone may leave members behind, and while they live its id is not given to anyone else.
      if ((now === null || now === recorded) && signalGroup(leader, 'SIGKILL')) ended += 1;
    }
    rmSync(join(directory, name), { force: true });
  }
  return ended;
}

/** A process that is being born while `/proc` is read may be missed once, not again and again. */
const maxSweeps = 5;

/**
 * Kills processes by what their environment says of them: those that left their group (a daemon with a session of
 * its own), and those whose group nobody came to record. Every command is started with HOME at its folder, and
 * children inherit it. Linux only, and a process that changed its environment cannot be told. Returns how many were
 * killed.
 */
export function endProcessesWith(isOurs: (variable: string) => boolean): number {
  if (process.platform !== 'linux') return 0;
  const ended = new Set<number>();
  for (let sweep = 0; sweep < maxSweeps; sweep += 1) {
    const found = processesWith(isOurs);
    if (found.length === 0) break;
    for (const pid of found) if (kill(pid)) ended.add(pid);
  }
  return ended.size;
}

/** Those whose HOME begins with one of the prefixes. */
export function endProcessesAtHome(...homePrefixes: string[]): number {
  if (homePrefixes.length === 0) return 0;
  return endProcessesWith((variable) => homePrefixes.some((prefix) => variable.startsWith(`HOME=${prefix}`)));
}

function processesWith(isOurs: (variable: string) => boolean): number[] {
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      if (readFileSync(`/proc/${name}/environ`, 'latin1').split('\0').some(isOurs)) found.push(pid);
    } catch {
      // It ended meanwhile, or belongs to somebody else.
    }
  }
  return found;
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch {
    return false;
  }
}
