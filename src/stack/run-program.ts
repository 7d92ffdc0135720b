import { spawn } from 'node:child_process';
import { signalGroup } from './process-identity.ts';
import { StackError, type StackFaultCode } from './stack-error.ts';

const longestMs = 10 * 60_000;
const keptOutput = 64 * 1024;
const quotedLines = 6;

export interface ProgramRun {
  command: string;
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  /** What a failure is thrown as. */
  faultCode: StackFaultCode;
  input?: string;
}

/**
 * Runs a program to its end and returns what it printed. It gets ten minutes and a process group of its own, so that a
 * Ctrl-C is the supervisor's to pass on. Throws `faultCode` with the end of its output, or the abort's reason.
 */
export async function runProgram(run: ProgramRun): Promise<string> {
  const { command, args, cwd, env, signal, input } = run;
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  const failed = (how: string, cause?: unknown): StackError => {
    const lines = `${printed}\n${complained}`.split('\n').filter((line) => line.trim() !== '');
    const tail = lines.slice(-quotedLines).map((line) => `\n  | ${line}`);
    return new StackError(run.faultCode, `${[command, ...args].join(' ')} ${how}${tail.join('')}`, [], {
      cause,
    });
  };
  let printed = '';
  let complained = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed = (printed + text).slice(-keptOutput);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complained = (complained + text).slice(-keptOutput);
  });
  child.stdin.on('error', () => undefined); // it ended without reading; its exit says why
  child.stdin.end(input ?? '');

  const limit = AbortSignal.any([signal, AbortSignal.timeout(longestMs)]);
  const end = (): void => {
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
  };
  limit.addEventListener('abort', end, { once: true });
  child.on('error', (fault: NodeJS.ErrnoException) => {
    reject(
      failed(
        fault.code === 'ENOENT' ? 'could not be run: no such program' : `failed: ${fault.message}`,
        fault,
      ),
    );
  });
  child.on('close', (code, endSignal) => {
    if (code === 0) resolve(printed);
    else if (signal.aborted) reject(signal.reason as Error);
    else
      reject(
        failed(
          limit.aborted ? `was ended after ${longestMs / 60_000} min` : `ended with ${code ?? endSignal}`,
        ),
      );
  });
  try {
    return await promise;
  } finally {
    limit.removeEventListener('abort', end);
  }
}
