// One for the whole namespace, ensured by every reconciler: starts the workflows of scans that lost theirs,
// reads results whose scan's workflow is away, clears what is old.
import {
  continueAsNew,
  log,
  proxyActivities,
  setCurrentDetails,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { FinalizerActivities, ReconcilerActivities } from '#sonar/contracts/activities.ts';
import { taskQueues } from '#sonar/contracts/names.ts';

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
});

export async function maintenance(): Promise<never> {
  for (;;) {
    const { restarted, purged, unread } = await reconciler.maintain();
    setCurrentDetails(
      `Last pass: ${restarted} scan workflow(s) started, ${purged} old outbox event(s) cleared`,
    );
    if (unread)
      await finalizer
        .drain({ scanId: null })
        .catch((error: unknown) => log.warn('drain failed; rows stay due', { error }));
    const info = workflowInfo();
    if (info.continueAsNewSuggested || info.historyLength > maxEventsARun)
      await continueAsNew<typeof maintenance>();
    await sleep(everyMs, {
      summary: restarted > 0 ? `started ${restarted} scan workflow(s)` : 'nothing to mend',
    });
  }
}
