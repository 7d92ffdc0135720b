import type { WorkflowHandle } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { searchAttributes } from '#sonar/contracts/names.ts';

type HistoryEvents = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>;

// Far longer than it takes, shorter than a test may: a search that fails must not outlive its test.
const lookForMs = 30_000;

/** What a test asks of one run's history. */
export class HistoryView {
  readonly events: HistoryEvents;

  constructor(events: HistoryEvents) {
    this.events = events;
  }

  static async of(handle: Pick<WorkflowHandle, 'fetchHistory'>): Promise<HistoryView> {
    return new HistoryView((await handle.fetchHistory()).events ?? []);
  }

  /** Reads the history again until it shows what `has` looks for. */
  static async when(
    handle: Pick<WorkflowHandle, 'fetchHistory'>,
    has: (view: HistoryView) => boolean,
  ): Promise<HistoryView> {
    const end = performance.now() + lookForMs;
    for (;;) {
      const view = await HistoryView.of(handle);
      if (has(view)) return view;
      if (performance.now() > end)
        throw new Error(`not seen in ${lookForMs / 1_000} s; the history has ${view.length} events`);
    }
  }

  get length(): number {
    return this.events.length;
  }

  /** Each wait, as it was begun. */
  get waits(): { ms: number; summary: string }[] {
    return this.events
      .filter((event) => event.timerStartedEventAttributes)
      .map((event) => ({
        ms: tsToMs(event.timerStartedEventAttributes?.startToFireTimeout),
        summary: textOf(event.userMetadata?.summary),
      }));
  }

  get cancelledWaits(): number {
    return this.events.filter((event) => event.timerCanceledEventAttributes).length;
  }

  /** Each call of an activity, with its summary. */
  get activities(): { name: string; summary: string }[] {
    return this.events
      .filter((event) => event.activityTaskScheduledEventAttributes)
      .map((event) => ({
        name: event.activityTaskScheduledEventAttributes?.activityType?.name ?? '',
        summary: textOf(event.userMetadata?.summary),
      }));
  }

  /** How many calls of the activity the history shows as completed. */
  completed(name: string): number {
    const scheduled = new Set(
      this.events
        .filter((event) => event.activityTaskScheduledEventAttributes?.activityType?.name === name)
        .map((event) => String(event.eventId)),
    );
    return this.events.filter((event) =>
      scheduled.has(String(event.activityTaskCompletedEventAttributes?.scheduledEventId)),
    ).length;
  }

  /** The values that the scan's status attribute was given, in order. */
  get shownStatuses(): unknown[] {
    return this.events.flatMap((event) => {
      const fields = event.upsertWorkflowSearchAttributesEventAttributes?.searchAttributes?.indexedFields;
      const status = fields?.[searchAttributes.status];
      return status ? [defaultPayloadConverter.fromPayload(status)] : [];
    });
  }

  get signals(): number {
    return this.events.filter((event) => event.workflowExecutionSignaledEventAttributes).length;
  }

  get workflowTaskFailures(): number {
    return this.events.filter((event) => event.workflowTaskFailedEventAttributes).length;
  }

  /** The run that this one goes on from. */
  get previousRunId(): string | undefined {
    return this.events[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId || undefined;
  }

  /** What the run was started with. */
  get input(): unknown {
    const payload = this.events[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
    return payload ? defaultPayloadConverter.fromPayload(payload) : undefined;
  }
}

function textOf(
  payload: Parameters<typeof defaultPayloadConverter.fromPayload>[0] | null | undefined,
): string {
  return payload ? defaultPayloadConverter.fromPayload<string>(payload) : '';
}
