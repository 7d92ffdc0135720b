// What a result comes to, decided from the task as it is locked.

import type { RetrySpec } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { TaskStatus } from '#sonar/contracts/states.ts';
import type { Disposition, Result } from '#sonar/contracts/worker-api.ts';
import { nextTaskStatus } from './task-states.ts';

export interface AttemptAsLocked {
  attemptId: string;
  /** Digest of the result that was accepted of this attempt, if one was. */
  acceptedDigest: string | null;
  taskStatus: TaskStatus;
  currentAttemptId: string | null;
  retries: number;
}

export type ResultDecision =
  | { kind: 'answer'; disposition: Exclude<Disposition, 'accepted' | 'rejected'> }
  | { kind: 'complete' }
  | { kind: 'fail'; code: string; message: string }
  | { kind: 'retry'; delayMs: number }
  /** The worker has not the program: another one may have it, and no budget is used. */
  | { kind: 'elsewhere'; delayMs: number; message: string };

/** Another worker gets the task in the meantime, or comes; one without the program would get it straight back. */
export const passedOverMs = 30_000;

/** Same digest: `duplicate`; another digest: `conflict`; not the current attempt: `superseded`. */
export function decideResult(attempt: AttemptAsLocked, result: Result, retry: RetrySpec): ResultDecision {
  if (attempt.acceptedDigest !== null)
    return {
      kind: 'answer',
      disposition: attempt.acceptedDigest === result.digest ? 'duplicate' : 'conflict',
    };
  if (attempt.currentAttemptId !== attempt.attemptId) return { kind: 'answer', disposition: 'superseded' };
  const event = result.outcome === 'completed' ? 'completed' : 'failed';
  // A current attempt that never said `started` has not run: its result is nobody's.
  if (attempt.taskStatus !== 'Running' || nextTaskStatus(attempt.taskStatus, event) === undefined)
    return { kind: 'answer', disposition: 'superseded' };
  if (event === 'completed') return { kind: 'complete' };
  if (result.outcome === 'not_started' && result.failure?.code === failureCodes.commandNotFound)
    return { kind: 'elsewhere', delayMs: passedOverMs, message: result.failure.message };
  if (attempt.retries < retry.max)
    return {
      kind: 'retry',
      delayMs: Math.min(retry.maxBackoffMs, retry.backoffMs * 2 ** Math.min(attempt.retries, 30)),
    };
  return { kind: 'fail', ...failureOf(result) };
}

function failureOf(result: Result): { code: string; message: string } {
  if (result.failure) return result.failure;
  if (result.outcome === 'timed_out')
    return { code: failureCodes.commandTimedOut, message: 'the command ran into its timeout' };
  const how = result.signal ? `was ended by ${result.signal}` : `exited with ${result.exitCode}`;
  return { code: failureCodes.commandFailed, message: `the command ${how}` };
}
