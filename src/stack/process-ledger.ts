import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  findByEnvironment,
  groupIsAlive,
  identifyProcess,
  isAlive,
  type ProcessIdentity,
  signalGroup,
  signalProcess,
} from './process-identity.ts';

export type ProcessKind = 'service' | 'role';

/** One process group of a stack, written down as soon as its leader runs. */
export interface RecordedProcess extends ProcessIdentity {
  name: string;
  kind: ProcessKind;
  stopSignal: NodeJS.Signals;
  /** Files outside the data folder that it leaves when it is killed. */
  litter: readonly string[];
}

/** Every child carries this variable, so one that was started but not yet written down is found too. */
export const runVariable = 'SONAR_STACK_RUN';

const roleGraceMs = 3_000;
// PostgreSQL writes a checkpoint and RabbitMQ closes its queues in this time; SIGKILL is safe for both, only slower later.
const serviceGraceMs = 8_000;
const killedWithinMs = 3_000;
const pollMs = 25;

/**
 * The processes of one run of a stack, kept in a file of their own, so that the guard or the next start can end them
 * when the supervisor is gone. A file a run: a guard that is still at work never touches the next run's processes.
 */
export class ProcessLedger {
  readonly file: string;
  readonly runId: string;
  readonly #processes = new Map<number, RecordedProcess>();

  constructor(runDirectory: string, runId: string) {
    this.runId = runId;
    this.file = join(runDirectory, `${runId}.json`);
    this.#write();
  }

  /**
   * Writes a started process down. It must be the leader of its own group. A disk that takes nothing is no reason to let
   * go of a process: it is written down with the next one, and until then its environment tells whose it is.
   */
  add(pid: number, process: Omit<RecordedProcess, keyof ProcessIdentity>): void {
    const identity = identifyProcess(pid);
    if (!identity) return;
    const { name, kind, stopSignal, litter } = process;
    this.#processes.set(pid, { ...identity, name, kind, stopSignal, litter });
    this.#tryToWrite();
  }

  /** Strikes a process out whose whole group has ended. */
  remove(pid: number): void {
    if (this.#processes.delete(pid)) this.#tryToWrite();
  }

  #tryToWrite(): void {
    try {
      this.#write();
    } catch {
      // What stands there is of before, and who reads it asks for each process whether it is the one that was meant.
    }
  }

  #write(): void {
    mkdirSync(dirname(this.file), { recursive: true });
    const text = JSON.stringify({ runId: this.runId, processes: [...this.#processes.values()] });
    writeFileSync(`${this.file}.new`, text, { mode: 0o600 });
    renameSync(`${this.file}.new`, this.file);
  }
}

/** The ledgers that earlier runs left in `runDirectory`. */
export function leftLedgers(runDirectory: string): string[] {
  try {
    return readdirSync(runDirectory)
      .filter((name) => name.endsWith('.json'))
      .map((name) => join(runDirectory, name));
  } catch {
    return [];
  }
}

/**
 * Ends all that a ledger's run left behind: roles first, then services, each by its own stop signal and after a bounded
 * grace by SIGKILL to its group. Returns the names of what was found alive. Deletes the ledger.
 */
export async function endRun(ledgerFile: string): Promise<string[]> {
  let record: { runId: string; processes: RecordedProcess[] };
  try {
    record = JSON.parse(readFileSync(ledgerFile, 'utf8')) as typeof record;
  } catch {
    return []; // ended meanwhile by the guard, or by the supervisor itself
  }
  const alive = record.processes.filter((process) => isAlive(process));
  await endRecorded(
    alive.filter((process) => process.kind === 'role'),
    roleGraceMs,
  );
  await endRecorded(
    alive.filter((process) => process.kind === 'service'),
    serviceGraceMs,
  );
  const strays = findByEnvironment(`${runVariable}=${record.runId}`);
  for (const stray of strays) signalProcess(stray.pid, 'SIGKILL');
  await pollUntil(() => !strays.some(isAlive), killedWithinMs);
  for (const file of record.processes.flatMap(({ litter }) => litter)) rmSync(file, { force: true });
  rmSync(ledgerFile, { force: true });
  return [
    ...alive.map((process) => process.name),
    ...(alive.length === 0 && strays.length > 0 ? ['unrecorded'] : []),
  ];
}

async function endRecorded(processes: RecordedProcess[], graceMs: number): Promise<void> {
  for (const process of processes) signalProcess(process.pid, process.stopSignal);
  await pollUntil(() => !processes.some(isAlive), graceMs);
  for (const process of processes) signalGroup(process.pid, 'SIGKILL');
  await pollUntil(() => !processes.some((process) => groupIsAlive(process.pid)), killedWithinMs);
}

/** These are nobody's children any more: their end can only be looked for. */
async function pollUntil(condition: () => boolean, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  while (!condition() && performance.now() < until) await delay(pollMs);
}
