import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Guard {
  /** Lets the guard go; it ends what the ledger still lists, and itself. */
  dismiss(): void;
}

/** A guard is killed by somebody now and then at most; one that keeps ending cannot run here, and the next start cleans up. */
const mostLaunches = 10;
const guardEntry = fileURLToPath(new URL('./guard-process.ts', import.meta.url));

/** Starts the guard of a ledger, and another one should it be killed. It keeps no event loop alive. */
export function launchGuard(ledgerFile: string): Guard {
  let dismissed = false;
  let launches = 0;
  let guard: ChildProcess;
  const launch = (): void => {
    launches += 1;
    guard = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', guardEntry, ledgerFile], {
      detached: true, // a group of its own: killing the supervisor's group must not take the guard along
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: process.env['PATH'] },
    });
    guard.on('error', () => undefined);
    guard.stdin?.on('error', () => undefined);
    guard.unref();
    (guard.stdin as unknown as { unref?: () => void } | null)?.unref?.();
    guard.on('exit', () => {
      if (!dismissed && launches < mostLaunches) launch();
    });
  };
  launch();
  return {
    dismiss() {
      dismissed = true;
      guard.stdin?.end();
    },
  };
}
