// Coordinates one scan. It holds no state: every decision comes from PostgreSQL through its activities, so it
// may be ended and begun again at any point. Signals only wake it; history follows ticks, never tasks.

import { ActivityFailure, defineSearchAttributeKey } from '@temporalio/common';
import {
  type ActivityOptions,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  log,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { FinalizerActivities, PlanReport, ReconcilerActivities } from '#sonar/contracts/activities.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import { searchAttributes, taskQueues, wakeSignal } from '#sonar/contracts/names.ts';
import type { ScanStatus } from '#sonar/contracts/states.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { changesOf, detailsOf, faultOf } from './scan-view.ts';

const busyTickMs = 5_000;
const idleTickMs = 60_000;
// Below the 4,096 at which the server suggests it, with room for what is under way.
const maxEventsARun = 2_000;
// A drain that takes longer than this many events more is left behind: its next heartbeat tells it so, and the rows
// that it has not read stay due.
const maxEventsWithDrain = 3_000;
// A drain ends about a second after the last of the scan's results; the scan's end is not kept from anybody longer.
const lastDrainMs = 10_000;

// Faults of an activity are outages: they are waited out, since nothing here could decide better.
const retry = { initialInterval: 1_000, maximumInterval: 30_000 };
const reconcilerOptions: ActivityOptions = {
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '20 seconds',
  retry,
};
const finalizerOptions: ActivityOptions = {
  taskQueue: taskQueues.finalizer,
  startToCloseTimeout: '3 minutes',
  heartbeatTimeout: '20 seconds',
  // Rows that nobody reads stay due; a later tick asks again.
  scheduleToStartTimeout: '1 minute',
  retry: { ...retry, maximumAttempts: 3 },
};
/** `summary` is what the Temporal UI says beside the call. */
const reconciler = (summary?: string) =>
  proxyActivities<ReconcilerActivities>({ ...reconcilerOptions, summary });
const finalizer = (summary: string) => proxyActivities<FinalizerActivities>({ ...finalizerOptions, summary });

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
  /** Asked in Temporal and not yet committed to PostgreSQL. */
  #cancelAsked = false;
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
    this.#cancelAsked = true;
    this.#woken = true;
  }

  async run(): Promise<{ status: ScanStatus | 'gone' }> {
    for (;;) {
      this.#woken = false;
      const status = await this.#tick();
      if (isOver(status)) {
        await this.#endOfDrain();
        // A wake since the locked check may mean that the scan was reopened: look again.
        if (!this.#woken) return { status: status ?? 'gone' };
      } else if (this.#mayContinueAsNew()) {
        await continueAsNew<typeof scan>({ scanId: this.#scanId, shownStatus: this.#shownStatus });
      }
    }
  }

  /** One pass over the scan, then the wait for the next. */
  async #tick(): Promise<ScanStatus | undefined> {
    try {
      if (this.#cancelAsked) {
        await reconciler('cancel asked in Temporal').requestCancel({ scanId: this.#scanId });
        this.#cancelAsked = false;
      }
      return await this.#pass();
    } catch (error) {
      // What Temporal must not repeat (a role of another version, say) is mended by somebody from outside. A workflow
      // that failed would only be started again, without saying why.
      if (!(error instanceof ActivityFailure)) throw error;
      const fault = faultOf(error);
      log.warn('a tick failed; the next one tries again', { error });
      setCurrentDetails(detailsOf(this.#before, fault));
      this.#waitMs = Math.min(idleTickMs, this.#waitMs * 2);
      await this.#wait(fault);
      return 'Running';
    }
  }

  async #pass(): Promise<ScanStatus | undefined> {
    const scanId = this.#scanId;
    const report = await reconciler().plan({ scanId });
    this.#show(report);
    if (isOver(report.status)) return report.status;
    const { placed } = report.pending
      ? await reconciler(`place ${pendingOf(report)} pending`).place({ scanId })
      : { placed: '' };
    const { recovered } = report.stale
      ? await reconciler('look for lost tasks').recover({ scanId })
      : { recovered: '' };
    if (report.unread) this.#startDrain();
    if (report.settleable) {
      const { status } = await reconciler('is it over?').settle({ scanId });
      if (isOver(status)) {
        this.#show({ ...report, status });
        return status;
      }
    }
    const changes = changesOf(this.#before, report, { placed, recovered });
    this.#waitMs =
      changed(this.#before, report) || placed !== '' || recovered !== ''
        ? busyTickMs
        : Math.min(idleTickMs, this.#waitMs * 2);
    this.#before = report;
    if (!report.more) await this.#wait(changes);
    return report.status;
  }

  async #wait(summary: string): Promise<void> {
    if (!this.#woken) await condition(() => this.#woken, this.#waitMs, { summary });
  }

  /** One drain at a time, never waited for by a tick; none when this run is about to end. */
  #startDrain(): void {
    if (isLong()) return;
    this.#drain ??= finalizer('read results into the inventory')
      .drain({ scanId: this.#scanId })
      .then(
        () => undefined,
        (error: unknown) => log.warn('drain failed; rows stay due', { error }),
      )
      .then(() => {
        this.#drain = undefined;
      });
  }

  /** So that the last activity of an ended workflow is not left open in its history. */
  async #endOfDrain(): Promise<void> {
    if (this.#drain !== undefined && !this.#woken)
      await condition(() => this.#drain === undefined || this.#woken, lastDrainMs, {
        summary: 'results have been read',
      });
  }

  /** Ticks go on until the drain has ended; a cancel is committed first, for the next run would not know of it. */
  #mayContinueAsNew(): boolean {
    if (!isLong() || this.#cancelAsked) return false;
    return this.#drain === undefined || workflowInfo().historyLength > maxEventsWithDrain;
  }

  #show(report: PlanReport): void {
    setCurrentDetails(detailsOf(report));
    if (report.status === undefined || report.status === this.#shownStatus) return;
    this.#shownStatus = report.status;
    upsertSearchAttributes([{ key: statusAttribute, value: report.status }]);
  }
}

const isOver = (status: ScanStatus | undefined): boolean => status === undefined || !isScanOpen(status);

function isLong(): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || historyLength > maxEventsARun;
}

const pendingOf = (report: PlanReport): number => report.steps.reduce((sum, step) => sum + step.pending, 0);

function changed(before: PlanReport | undefined, now: PlanReport): boolean {
  return (
    before === undefined ||
    JSON.stringify(before.steps) !== JSON.stringify(now.steps) ||
    before.status !== now.status
  );
}
