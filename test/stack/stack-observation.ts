import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findByEnvironment, type ProcessIdentity } from '#sonar/stack/process-identity.ts';
import { leftLedgers, runVariable } from '#sonar/stack/process-ledger.ts';

const pollMs = 20;

/** The live processes of the stack that has a data folder now; of none when its ledger is gone. */
export function processesOf(dataFolder: string): ProcessIdentity[] {
  return leftLedgers(join(dataFolder, 'run')).flatMap((file) => {
    const { runId } = JSON.parse(readFileSync(file, 'utf8')) as { runId: string };
    return findByEnvironment(`${runVariable}=${runId}`);
  });
}

/** Waits for a condition of processes that are nobody's children; throws after `withinMs`. */
export async function eventually(condition: () => boolean, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  while (!condition()) {
    if (performance.now() > until) throw new Error(`not within ${withinMs} ms: ${condition.toString()}`);
    await delay(pollMs);
  }
}

/** The addresses (as the kernel writes them) on which the given processes listen for TCP. */
export function listeningAddresses(processes: readonly ProcessIdentity[]): string[] {
  const sockets = new Set(processes.flatMap(({ pid }) => socketsOf(pid)));
  const listening = '0A';
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) =>
    readFileSync(table, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === listening && sockets.has(fields[9] ?? ''))
      .map((fields) => fields[1]?.split(':')[0] ?? ''),
  );
}

function socketsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
      const target = readlinkSync(`/proc/${pid}/fd/${descriptor}`);
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      return inode ? [inode] : [];
    });
  } catch {
    return []; // gone meanwhile
  }
}

/** The pid of the guard of the stack that has a data folder now. */
export function guardOf(dataFolder: string): number {
  const [ledger = ''] = leftLedgers(join(dataFolder, 'run'));
  const pid = readdirSync('/proc').find((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').includes(ledger);
    } catch {
      return false;
    }
  });
  if (!pid) throw new Error(`no guard of ${ledger} runs`);
  return Number(pid);
}
