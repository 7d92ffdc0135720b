import type { WorkflowHandle } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { tsToMs } from '@temporalio/common/lib/time.js';

type HistoryEvents = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>;

/** What a test asks of one run's history. */
export class HistoryView {
  readonly events: HistoryEvents;

  constructor(events: HistoryEvents) {
    this.events = events;
  }

  static async of(handle: Pick<WorkflowHandle, 'fetchHistory'>): Promise<HistoryView> {
    return new HistoryView((await handle.fetchHistory()).events ?? []);
  }

  /** Reads the history again until it shows what `has` looks for; the test's own limit bounds it. */
  static async when(
    handle: Pick<WorkflowHandle, 'fetchHistory'>,
    has: (view: HistoryView) => boolean,
  ): Promise<HistoryView> {
    for (;;) {
      const view = await HistoryView.of(handle);
      if (has(view)) return view;
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

function textOf(payload: Parameters<typeof defaultPayloadConverter.fromPayload>[0] | null | undefined): string {
  return payload ? defaultPayloadConverter.fromPayload<string>(payload) : '';
}
