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

/**
 * Kills processes that left their group (a daemon with a session of its own): every command is started with HOME
 * below the worker's folder, and children inherit it. Linux only, and a process that changed its environment
 * cannot be told. Returns how many were killed.
 */
export function endProcessesAtHome(homePrefix: string): number {
  if (process.platform !== 'linux') return 0;
  let ended = 0;
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const environ = readFileSync(`/proc/${name}/environ`, 'latin1');
      if (!environ.split('\0').some((entry) => entry.startsWith(`HOME=${homePrefix}`))) continue;
      process.kill(pid, 'SIGKILL');
      ended += 1;
    } catch {
      // It ended meanwhile, or belongs to somebody else.
    }
  }
  return ended;
}
