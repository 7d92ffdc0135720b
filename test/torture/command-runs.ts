// Every run of every command, from the ledger that they write themselves, and when each was seen to be gone.
import { existsSync, openSync, readSync } from 'node:fs';
import { statOf, uptimeSeconds } from './members.ts';

export interface CommandRun {
  attemptId: string;
  worker: string;
  pid: number;
  scan: string;
  step: string;
  item: string;
  /** Seconds of the machine's uptime. */
  startedAt: number;
  /** Of its own ending, or when it was first not there any more; undefined while it runs. */
  endedAt: number | undefined;
}

export interface CommandRuns {
  readonly all: readonly CommandRun[];
  /** Those that were started and have not been seen to be gone. */
  live(): CommandRun[];
  /** Reads what is new and looks who is still there. */
  look(): void;
  stop(): void;
}

const lookEveryMs = 200;

/** The ledger need not be there yet. */
export function watchCommandRuns(ledger: string): CommandRuns {
  const all: CommandRun[] = [];
  const live = new Map<number, CommandRun & { startTicks: string | undefined }>();
  const chunk = Buffer.alloc(256 * 1024);
  let file: number | undefined;
  let rest = '';

  function read(): void {
    if (file === undefined) {
      if (!existsSync(ledger)) return;
      file = openSync(ledger, 'r');
    }
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk)) {
      const lines = (rest + chunk.toString('utf8', 0, size)).split('\n');
      rest = lines.pop() ?? '';
      lines.forEach(take);
    }
  }

  function take(line: string): void {
    const [kind, at, pidText, folder = '', scan = '', step = '', item = ''] = line.split(' ');
    const pid = Number(pidText);
    if (kind === 'end') {
      const run = live.get(pid);
      if (run !== undefined) end(run, Number(at));
      return;
    }
    const [, worker = '', attemptId = ''] = /\/([^/]+)\/work\/([^/]+)$/.exec(folder) ?? [];
    const earlier = live.get(pid);
    // The id was given again before anybody saw its first owner go.
    if (earlier !== undefined) end(earlier, Number(at));
    const run = { attemptId, worker, pid, scan, step, item, startedAt: Number(at), endedAt: undefined };
    const tracked = Object.assign(run, { startTicks: statOf(pid)?.startTicks });
    all.push(tracked);
    live.set(pid, tracked);
  }

  function end(run: CommandRun, at: number): void {
    run.endedAt = at;
    live.delete(run.pid);
  }

  function look(): void {
    read();
    for (const run of live.values()) {
      const stat = statOf(run.pid);
      if (stat === null || stat.startTicks !== run.startTicks) end(run, uptimeSeconds());
    }
  }

  const timer = setInterval(look, lookEveryMs);
  return {
    all,
    live: () => [...live.values()],
    look,
    stop: () => clearInterval(timer),
  };
}
