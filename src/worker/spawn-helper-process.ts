// A small process that starts the commands: fork copies the page tables of the process that calls it, and a worker
// that holds hundreds of megabytes would start thirty commands a second instead of hundreds. It outlives its worker
// only for as long as it takes to kill what it started.
import { endProcessesAtHome, signalGroup } from './process-trace.ts';
import type { FromHelper, ToHelper } from './spawn-protocol.ts';
import { type Command, startCommand } from './started-command.ts';

const running = new Map<string, Command>();

function tell(message: FromHelper): void {
  // A worker that is gone is noticed by `disconnect`, not here.
  process.send?.(message, undefined, undefined, () => undefined);
}

process.on('message', (message: ToHelper) => {
  if (message.type === 'end') {
    running.get(message.id)?.end(message.graceMs);
    return;
  }
  const { id } = message;
  const command = startCommand(message, {
    spawned: (pid) => tell({ type: 'spawned', id, pid }),
    ended: (end) => {
      running.delete(id);
      tell({ type: 'ended', id, end });
    },
  });
  if (command !== null) running.set(id, command);
});

// The worker died or let go: whatever still runs has nobody to answer to.
process.on('disconnect', () => {
  for (const { pid } of running.values()) signalGroup(pid, 'SIGKILL');
  endProcessesAtHome(...[...running.values()].map(({ cwd }) => cwd));
  process.exit(0);
});

// A terminal's Ctrl-C and a supervisor's SIGTERM are for the worker, which drains and then lets go.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
