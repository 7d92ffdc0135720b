// A small process that starts the commands: fork copies the page tables of the process that calls it, and a worker
// that holds hundreds of megabytes would start thirty commands a second instead of hundreds. It outlives its worker
// only for as long as it takes to kill what it started.
import { endStrays } from './process-trace.ts';
import type { FromHelper, ToHelper } from './spawn-protocol.ts';
import { type Command, startCommand } from './started-command.ts';

/** What left its command's group is looked for so soon after a command's end, */
const sweepAfterMs = 200;
/** no more often than this, */
const sweepEveryMs = 1_000;
/** and for at most one part in so many of the time: it costs as much as there are processes on the machine. */
const sweepShare = 50;

const running = new Map<string, Command>();
/** One for all commands of a worker. */
let work: string | null = null;
let sweeping: NodeJS.Timeout | null = null;
let nextSweepAt = 0;

function tell(message: FromHelper): void {
  // A worker that is gone is noticed by `disconnect`, not here.
  process.send?.(message, undefined, undefined, () => undefined);
}

function sweepSoon(): void {
  sweeping ??= setTimeout(sweep, Math.max(sweepAfterMs, nextSweepAt - performance.now()));
}

function sweep(): void {
  sweeping = null;
  const began = performance.now();
  const found = endThoseWithoutCommand();
  const ended = performance.now();
  nextSweepAt = ended + Math.max(sweepEveryMs, sweepShare * (ended - began));
  // Who was found may have been about to leave another.
  if (found > 0) sweepSoon();
}

function endThoseWithoutCommand(): number {
  if (work === null) return 0;
  const folders = new Set([...running.values()].map(({ cwd }) => cwd));
  return endStrays(work, (folder) => folders.has(folder));
}

process.on('message', (message: ToHelper) => {
  if (message.type === 'end') {
    running.get(message.id)?.end(message.graceMs);
    return;
  }
  const { id } = message;
  ({ work } = message);
  const command = startCommand(message, {
    spawned: (pid, identity) => tell({ type: 'spawned', id, pid, identity }),
    ended: (end) => {
      running.delete(id);
      if (end.kind === 'exited') sweepSoon();
      tell({ type: 'ended', id, end });
    },
  });
  if (command !== null) running.set(id, command);
});

// The worker died or let go: whatever still runs has nobody to answer to.
process.on('disconnect', () => {
  for (const command of running.values()) command.kill();
  running.clear();
  endThoseWithoutCommand();
  process.exit(0);
});

// A terminal's Ctrl-C and a supervisor's SIGTERM are for the worker, which drains and then lets go.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
