// Coordinates one scan. It holds no state: every decision comes from PostgreSQL through its activities, so it
// may be ended and begun again at any point. Signals only wake it; history follows ticks, never tasks.

import { defineSearchAttributeKey } from '@temporalio/common';
import {
  ActivityCancellationType,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  log,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { FinalizerActivities, PlanReport, ReconcilerActivities } from '#sonar/contracts/activities.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import { searchAttributes, taskQueues, wakeSignal } from '#sonar/contracts/names.ts';
import type { ScanStatus } from '#sonar/contracts/states.ts';
import { changesOf, detailsOf } from './scan-view.ts';

const busyTickMs = 5_000;
const idleTickMs = 60_000;
// Below the 4,096 at which the server suggests it, with room for what is under way.
const maxEventsARun = 2_000;

// Faults of an activity are outages: they are waited out, since nothing here could decide better.
const retry = { initialInterval: 1_000, maximumInterval: 30_000 };
const reconciler = proxyActivities<ReconcilerActivities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '20 seconds',
  retry,
});
const finalizer = proxyActivities<FinalizerActivities>({
  taskQueue: taskQueues.finalizer,
  startToCloseTimeout: '3 minutes',
  heartbeatTimeout: '20 seconds',
  // Rows that nobody reads stay due; a later tick asks again.
  scheduleToStartTimeout: '1 minute',
  retry: { ...retry, maximumAttempts: 3 },
  cancellationType: ActivityCancellationType.ABANDON,
});

const wake = defineSignal(wakeSignal);
const statusAttribute = defineSearchAttributeKey(searchAttributes.status, 'KEYWORD');

export async function scan(input: {
  scanId: ScanId;
  shownStatus?: ScanStatus;
}): Promise<{ status: ScanStatus | 'gone' }> {
  const ticker = new Ticker(input.scanId, input.shownStatus ?? 'Running');
  // A cancel from the Temporal UI means the same as ours: the scan is cancelled in PostgreSQL and seen to its end.
  CancellationScope.current().cancelRequested.catch(() => ticker.askToCancel());
  return CancellationScope.nonCancellable(() => ticker.run());
}

class Ticker {
  readonly #scanId: ScanId;
  #shownStatus: ScanStatus;
  #woken = false;
  #cancel: 'no' | 'asked' | 'committed' = 'no';
  #drain: Promise<void> | undefined;
  #before: PlanReport | undefined;
  #waitMs = busyTickMs;

  constructor(scanId: ScanId, shownStatus: ScanStatus) {
    this.#scanId = scanId;
    this.#shownStatus = shownStatus;
    setHandler(wake, () => {
      this.#woken = true;
    });
  }

  askToCancel(): void {
    if (this.#cancel === 'no') this.#cancel = 'asked';
  }

  async run(): Promise<{ status: ScanStatus | 'gone' }> {
    for (;;) {
      if (this.#cancel === 'asked') {
        await reconciler.requestCancel.executeWithOptions({ summary: 'cancel asked in Temporal' }, [
          { scanId: this.#scanId },
        ]);
        this.#cancel = 'committed';
      }
      this.#woken = false;
      const report = await this.#tick();
      if (isOver(report.status)) {
        await this.#drain;
        // A wake since the locked check may mean that the scan was reopened: look again.
        if (!this.#woken) return { status: report.status ?? 'gone' };
        continue;
      }
      const info = workflowInfo();
      if (info.continueAsNewSuggested || info.historyLength > maxEventsARun) {
        await this.#drain;
        await continueAsNew<typeof scan>({ scanId: this.#scanId, shownStatus: this.#shownStatus });
      }
    }
  }

  /** One pass over the scan, then the wait for the next. */
  async #tick(): Promise<PlanReport> {
    const scanId = this.#scanId;
    const report = await reconciler.plan({ scanId });
    this.#show(report);
    if (report.status === undefined || isOver(report.status)) return report;
    const { placed } = report.pending
      ? await reconciler.place.executeWithOptions({ summary: `place ${pendingOf(report)} pending` }, [
          { scanId },
        ])
      : { placed: '' };
    if (report.unread) this.#startDrain();
    if (report.settleable) {
      const { status } = await reconciler.settle.executeWithOptions({ summary: 'is it over?' }, [{ scanId }]);
      if (isOver(status)) {
        const settled = { ...report, status };
        this.#show(settled);
        return settled;
      }
    }
    const changes = changesOf(this.#before, report, placed);
    this.#waitMs =
      changed(this.#before, report) || placed !== '' ? busyTickMs : Math.min(idleTickMs, this.#waitMs * 2);
    this.#before = report;
    if (!report.more) await this.#wait(changes);
    return report;
  }

  async #wait(summary: string): Promise<void> {
    if (this.#isCalled()) return;
    const scope = new CancellationScope();
    await scope.run(() =>
      Promise.race([sleep(this.#waitMs, { summary }), condition(() => this.#isCalled())]),
    );
    scope.cancel();
  }

  #isCalled(): boolean {
    return this.#woken || this.#cancel === 'asked';
  }

  /** One drain at a time, never waited for by a tick. */
  #startDrain(): void {
    this.#drain ??= finalizer.drain
      .executeWithOptions({ summary: 'read results into the inventory' }, [{ scanId: this.#scanId }])
      .then(
        () => undefined,
        (error: unknown) => log.warn('drain failed; rows stay due', { error }),
      )
      .then(() => {
        this.#drain = undefined;
      });
  }

  #show(report: PlanReport): void {
    setCurrentDetails(detailsOf(report));
    if (report.status === undefined || report.status === this.#shownStatus) return;
    this.#shownStatus = report.status;
    upsertSearchAttributes([{ key: statusAttribute, value: report.status }]);
  }
}

const isOver = (status: ScanStatus | undefined): boolean =>
  status !== 'Running' && status !== 'Paused' && status !== 'Cancelling';

const pendingOf = (report: PlanReport): number => report.steps.reduce((sum, step) => sum + step.pending, 0);

function changed(before: PlanReport | undefined, now: PlanReport): boolean {
  return (
    before === undefined ||
    JSON.stringify(before.steps) !== JSON.stringify(now.steps) ||
    before.status !== now.status
  );
}
