// One command in its own process group, from spawn to the last byte of its output. Runs in the spawn helper.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { endProcessesAtHome, forgetGroup, markVariable, recordGroup, signalGroup } from './process-trace.ts';
import type { CommandEnd, SpawnRequest } from './spawn-protocol.ts';
import { createStreamSink, type StreamSink } from './stream-sink.ts';

export interface Command {
  readonly cwd: string;
  /** SIGTERM, then SIGKILL after `graceMs`; 0 kills at once. The earliest kill wins. */
  end(graceMs: number): void;
  /** At once, for a process that ends now itself. */
  kill(): void;
}

/** Pipes that are open so long after the leader and its group are dead are held by a daemon that left the group. */
const escapeGraceMs = 1_000;
/** From the end of such daemons to giving the pipes up. */
const pipeGraceMs = 5_000;

/** Null when the command could not be started; `ended` has been or will be called either way, once. */
export function startCommand(
  request: SpawnRequest,
  on: { spawned: (pid: number, identity: string) => void; ended: (end: CommandEnd) => void },
): Command | null {
  const startedAt = performance.now();
  let sinks: [StreamSink, StreamSink] | null = null;
  let stdin: number | null = null;
  let child: ChildProcess;
  let prepared = false;
  try {
    stdin = request.stdinPath === null ? null : openSync(request.stdinPath, 'r');
    sinks = [createStreamSink(request.stdout), createStreamSink(request.stderr)];
    const [program, ...args] = request.argv;
    prepared = true;
    child = spawn(program as string, args, {
      cwd: request.cwd,
      env: { ...request.env, [markVariable]: request.cwd },
      detached: true,
      stdio: [stdin ?? 'ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    for (const sink of sinks ?? []) sink.finish();
    on.ended(notStarted(error, !prepared));
    return null;
  } finally {
    if (stdin !== null) closeSync(stdin);
  }
  const [stdout, stderr] = sinks;
  const pid = child.pid;
  if (pid === undefined) {
    child.once('error', (error) => {
      stdout.finish();
      stderr.finish();
      // The system says ENOENT of the folder to start in as it does of the program.
      on.ended(notStarted(error, !isFolder(request.cwd)));
    });
    return null;
  }
  on.spawned(pid, recordGroup(request.groups, pid));

  let timedOut = false;
  /** The group was killed with its leader's exit, and its number may be a stranger's by now. */
  let exited = false;
  const kill = () => {
    if (!exited) signalGroup(pid, 'SIGKILL');
  };
  let killTimer: NodeJS.Timeout | undefined;
  let killAt = Number.POSITIVE_INFINITY;
  const end = (graceMs: number) => {
    if (exited) return;
    // A cancel is repeated with every pulse: it must not put off the kill.
    const at = performance.now() + graceMs;
    if (at >= killAt) return;
    killAt = at;
    clearTimeout(killTimer);
    if (graceMs > 0) {
      signalGroup(pid, 'SIGTERM');
      // A group that is stopped does not see SIGTERM before it goes on.
      signalGroup(pid, 'SIGCONT');
    }
    killTimer = setTimeout(kill, graceMs);
  };
  const timeout = setTimeout(
    () => {
      timedOut = true;
      end(request.graceMs);
    },
    Math.min(request.timeoutMs, 2 ** 31 - 1),
  );

  // Readable streams, not sockets, are what is needed of them; stdio 'pipe' guarantees both.
  const pipes = [child.stdout as Readable, child.stderr as Readable] as const;
  pipes[0].on('data', (chunk: Buffer) => stdout.write(chunk));
  pipes[1].on('data', (chunk: Buffer) => stderr.write(chunk));

  let pipeTimer: NodeJS.Timeout | undefined;
  const endEscaped = () => {
    endProcessesAtHome(request.cwd);
    // Their death closes the pipes, after what is still in them has been read.
    pipeTimer = setTimeout(() => {
      for (const sink of [stdout, stderr]) sink.cut('held open by a process that could not be found');
      for (const pipe of pipes) pipe.destroy();
    }, pipeGraceMs);
  };
  let durationMs = 0;
  child.once('exit', () => {
    exited = true;
    durationMs = Math.round(performance.now() - startedAt);
    clearTimeout(timeout);
    clearTimeout(killTimer);
    signalGroup(pid, 'SIGKILL');
    forgetGroup(request.groups, pid);
    pipeTimer = setTimeout(endEscaped, escapeGraceMs);
  });
  child.once('close', (exitCode, signal) => {
    clearTimeout(pipeTimer);
    on.ended({
      kind: 'exited',
      exitCode,
      signal,
      timedOut,
      durationMs,
      stdout: stdout.finish(),
      stderr: stderr.finish(),
    });
  });
  // Errors after the start (a failed kill) change nothing: the exit is what counts.
  child.on('error', () => undefined);
  return { cwd: request.cwd, end, kill };
}

function notStarted(error: unknown, own: boolean): CommandEnd {
  const { code, message } = error as { code?: string; message?: string };
  return { kind: 'not_started', code: code ?? 'UNKNOWN', message: message ?? String(error), own };
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
