// One for the whole namespace, ensured by every reconciler: starts the workflows of scans that lost theirs, looks for
// lost tasks and reads results of scans whose workflow is away, clears what is old.
import { ActivityFailure } from '@temporalio/common';
import {
  continueAsNew,
  isCancellation,
  log,
  proxyActivities,
  setCurrentDetails,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { FinalizerActivities, ReconcilerActivities } from '#sonar/contracts/activities.ts';
import { taskQueues } from '#sonar/contracts/names.ts';
import { faultOf } from './scan-view.ts';

const everyMs = 60_000;
const maxEventsARun = 2_000;

const reconciler = proxyActivities<ReconcilerActivities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '20 seconds',
  retry: { initialInterval: 1_000, maximumInterval: 60_000 },
});
const finalizer = proxyActivities<FinalizerActivities>({
  taskQueue: taskQueues.finalizer,
  startToCloseTimeout: '3 minutes',
  heartbeatTimeout: '20 seconds',
  scheduleToStartTimeout: '1 minute',
  retry: { maximumAttempts: 1 },
  summary: 'read results that nobody else reads',
});

export async function maintenance(): Promise<never> {
  for (;;) {
    const { unread, summary } = await pass();
    // Side by side: a finalizer that hangs must not keep lost scans waiting longer than its own time limit.
    await Promise.all([sleep(everyMs, { summary }), unread ? drain() : undefined]);
    const info = workflowInfo();
    if (info.continueAsNewSuggested || info.historyLength > maxEventsARun)
      await continueAsNew<typeof maintenance>();
  }
}

/** Never fails but by a cancel: lost scans have nobody else. */
async function pass(): Promise<{ unread: boolean; summary: string }> {
  try {
    const { restarted, recovered, purged, retired, unread } = await reconciler.maintain();
    setCurrentDetails(
      `Last pass: ${restarted} scan workflow(s) started, ${recovered} lost task(s) recovered, ${purged} old outbox event(s) and ${retired} old worker(s) cleared`,
    );
    const mended = [
      restarted > 0 ? `started ${restarted} scan workflow(s)` : '',
      recovered > 0 ? `recovered ${recovered} lost task(s)` : '',
    ].filter((part) => part !== '');
    return { unread, summary: mended.join('; ') || 'nothing to mend' };
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    const fault = faultOf(error);
    log.warn('a maintenance pass failed; the next one tries again', { error });
    setCurrentDetails(`Last pass failed: ${fault}`);
    return { unread: false, summary: fault };
  }
}

const drain = (): Promise<unknown> =>
  finalizer.drain({ scanId: null }).catch((error: unknown) => {
    if (isCancellation(error)) throw error;
    log.warn('drain failed; rows stay due', { error });
  });
