import { Context } from '@temporalio/activity';
import type { FinalizerActivities } from '#sonar/contracts/activities.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import { type FinalizeParts, finalizeResults } from '#sonar/flow/finalize-results.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { pause } from '#sonar/platform/wait.ts';
import { beating } from './beating.ts';

export interface FinalizerParts extends FinalizeParts {
  /** Tells a scan's workflow that there is something to plan; coalesced by the callee. */
  wake(scanId: ScanId): void;
}

const budgetMs = 60_000;
const pollMs = 100;
// Ends a drain soon after its work, so that a scan that waits for it to end is not kept.
const idleMs = 1_000;

export function createFinalizerActivities(parts: FinalizerParts): FinalizerActivities {
  return { drain: ({ scanId }) => beating(() => drain(parts, scanId)) };
}

async function drain(parts: FinalizerParts, scanId: ScanId | null): Promise<{ batches: number }> {
  const { cancellationSignal } = Context.current();
  const end = Date.now() + budgetMs;
  let lastWork = Date.now();
  let batches = 0;
  while (Date.now() < end && Date.now() - lastWork < idleMs && !cancellationSignal.aborted) {
    const scans = await finalizeResults(parts, cancellationSignal).catch((error: unknown) => {
      parts.log.error({ operation: 'finalization_batch_failed', error: messageOf(error) });
      throw error;
    });
    if (scans) {
      batches += 1;
      for (const scan of scans) parts.wake(scan);
      if (scanId === null || scans.has(scanId)) lastWork = Date.now();
    } else await pause(pollMs, cancellationSignal);
  }
  return { batches };
}
