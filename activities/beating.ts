import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { faultCodes, isSonarError, messageOf } from '#sonar/platform/errors.ts';

// Well below every heartbeat timeout of the workflows, so that one lost beat ends nothing.
const beatEveryMs = 4_000;

/** Heartbeats while the work goes on, and maps its fault to Temporal's: coded, and final where no retry mends it. */
export async function beating<Result>(work: () => Promise<Result>): Promise<Result> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), beatEveryMs);
  try {
    return await work();
  } catch (error) {
    if (!isSonarError(error)) throw error;
    throw ApplicationFailure.create({
      message: messageOf(error),
      type: error.code,
      nonRetryable: !faultCodes[error.code].retryable && error.code !== 'lease_lost',
      cause: error,
    });
  } finally {
    clearInterval(timer);
  }
}
