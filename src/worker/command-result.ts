// From what happened on this machine to what is claimed about it. Pure.
import { createHash } from 'node:crypto';
import type { Dispatch } from '#sonar/contracts/dispatch-message.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { Outcome } from '#sonar/contracts/states.ts';
import { type ManifestEntry, messageVersion, type Result } from '#sonar/contracts/worker-api.ts';
import { resultDigest } from '#sonar/domain/result-digest.ts';
import type { OutputFaults } from './outputs.ts';
import { isOwnLack } from './own-lack.ts';
import type { CommandEnd, StreamEnd } from './spawn-protocol.ts';

export type Failure = Result['failure'];

export interface ResultIdentity {
  attemptId: string;
  dispatchKey: string;
  worker: string;
  incarnationId: string;
}

export interface Verdict {
  outcome: Outcome;
  failure: Failure;
}

const maxMessage = 2000;

export function failureOf(code: string, message: string): NonNullable<Failure> {
  // Lone surrogates and NUL would not pass through JSON and PostgreSQL; the cut may make one.
  return { code, message: message.replaceAll('\0', '').slice(0, maxMessage).toWellFormed() };
}

/** What a command that ran came to; a bad end of the command outweighs faults of its outputs. */
export function judge(
  dispatch: Pick<Dispatch, 'command' | 'okExit' | 'timeoutMs' | 'step'>,
  end: Extract<CommandEnd, { kind: 'exited' }>,
  faults: OutputFaults,
  cancelled: boolean,
): Verdict {
  if (cancelled)
    return { outcome: 'cancelled', failure: failureOf(failureCodes.scanCancelled, 'cancelled while it ran') };
  if (end.timedOut)
    return {
      outcome: 'timed_out',
      failure: failureOf(failureCodes.commandTimedOut, `ended after its timeout of ${dispatch.timeoutMs} ms`),
    };
  if (end.exitCode === null || !dispatch.okExit.includes(end.exitCode)) {
    const how =
      end.exitCode === null ? `was killed by ${end.signal ?? 'a signal'}` : `exited with ${end.exitCode}`;
    return {
      outcome: 'failed',
      failure: failureOf(failureCodes.commandFailed, `the command of step ${dispatch.step} ${how}`),
    };
  }
  if (faults.refused.length > 0)
    return { outcome: 'failed', failure: failureOf(failureCodes.outputRefused, faults.refused.join('; ')) };
  if (faults.missing.length > 0)
    return {
      outcome: 'failed',
      failure: failureOf(
        failureCodes.outputMissing,
        `the command succeeded but left no ${faults.missing.join(', ')}`,
      ),
    };
  return { outcome: 'completed', failure: null };
}

/** Why a program could not be started: `lack` is this machine's doing (no process, no disk), not the command's. */
export function judgeNotStarted(
  end: Extract<CommandEnd, { kind: 'not_started' }>,
  at: { program: string; worker: string; image: string; tag: string; path: string },
): NonNullable<Failure> | 'lack' {
  if (end.own || isOwnLack(end)) return 'lack';
  const where = `worker ${at.worker} (image "${at.image}", tag ${at.tag}, PATH ${at.path})`;
  switch (end.code) {
    case 'ENOENT':
      return failureOf(
        failureCodes.commandNotFound,
        `${at.program}, or the interpreter that it names, was not found on ${where}`,
      );
    case 'EACCES':
      return failureOf(failureCodes.commandNotFound, `${at.program} may not be executed on ${where}`);
    case 'E2BIG':
      return failureOf(
        failureCodes.commandFailed,
        'the arguments are too large (Linux takes 128 KiB in one and about 2 MiB in all); hand them over as a file or by stdin',
      );
    default:
      return failureOf(
        failureCodes.commandFailed,
        `${at.program} could not be started on ${where}: ${end.message}`,
      );
  }
}

const emptyStream: StreamEnd = {
  head: '',
  size: 0,
  sha256: createHash('sha256').digest('hex'),
  truncated: false,
  fault: null,
};

export interface Streams {
  stdout: StreamEnd;
  stderr: StreamEnd;
}
export const noStreams: Streams = { stdout: emptyStream, stderr: emptyStream };

/** The body of the result, digest included. */
export function buildResult(
  identity: ResultIdentity,
  verdict: Verdict,
  command: {
    exitCode: number | null;
    signal: string | null;
    durationMs: number;
    stdoutDeclared: boolean;
  } & Streams,
  manifest: ManifestEntry[],
): Result {
  const stream = ({ head, size, sha256, truncated }: StreamEnd, declared: boolean) => ({
    head: declared ? null : head,
    size,
    sha256,
    truncated,
  });
  const claim = {
    v: messageVersion,
    ...identity,
    ...verdict,
    exitCode: command.exitCode,
    signal: command.signal,
    manifest,
    stdout: stream(command.stdout, command.stdoutDeclared),
    stderr: stream(command.stderr, false),
    durationMs: command.durationMs,
  } as const;
  return { ...claim, digest: resultDigest(claim) };
}
