import { type ChildProcess, spawn } from 'node:child_process';

/** Groups that are still running. None outlives this process, whatever makes it exit. */
const running = new Set<ProcessGroup>();
process.on('exit', () => {
  for (const group of running) group.signal('SIGKILL');
});

/**
 * A child that leads a process group of its own, so that it and all that it started can be ended at once. The
 * terminal's Ctrl-C does not reach such a group: `endGroupsOnSignals` passes signals on.
 */
export class ProcessGroup {
  readonly child: ChildProcess;
  readonly ended: Promise<Ending>;

  constructor(
    command: string,
    args: readonly string[],
    options: { cwd: string; env?: NodeJS.ProcessEnv; output: 'inherit' | 'pipe' },
  ) {
    this.child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      detached: true,
      stdio: ['ignore', options.output, options.output],
    });
    running.add(this);
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => resolve({ code: null, signal: null, error }));
      this.child.once('close', (code, signal) => resolve({ code, signal }));
    });
    void this.ended.then(() => running.delete(this));
  }

  signal(signal: NodeJS.Signals): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // The group has ended between the decision and the signal.
    }
  }

  /** SIGTERM, then SIGKILL after `graceMs`. */
  async end(graceMs: number): Promise<void> {
    this.signal('SIGTERM');
    const timer = setTimeout(() => this.signal('SIGKILL'), graceMs);
    await this.ended;
    clearTimeout(timer);
    this.signal('SIGKILL');
  }
}

export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
  error?: Error;
}

/**
 * On the first signal: ends every group, calls `afterwards`, and exits as the signal asks. The answer tells whether
 * that has begun, since whoever waits for a group goes on when it ends.
 */
export function endGroupsOnSignals(
  graceMs: number,
  afterwards: (signal: NodeJS.Signals) => Promise<void>,
): () => boolean {
  let ending = false;
  const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (ending) return;
      ending = true;
      void Promise.all([...running].map((group) => group.end(graceMs)))
        .then(() => afterwards(signal))
        .finally(() => process.exit(exitCodes[signal]));
    });
  }
  return () => ending;
}
