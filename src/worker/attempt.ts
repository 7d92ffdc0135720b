// The life of one attempt on this worker: started, worked on, delivered, and its message settled. The message and
// the work are apart: a broker that takes the message back neither stops nor repeats the command.
import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import type { Delivery } from '#sonar/transport/amqp-consumer.ts';
import type { AttemptContext, Intent } from './attempt-context.ts';
import { clearWork } from './attempt-prepare.ts';
import { releaseAttempt } from './attempt-release.ts';
import { reportStarted } from './attempt-start.ts';
import { type WorkEnd, work } from './attempt-work.ts';
import { within } from './gate.ts';
import { attemptFolders } from './paths.ts';
import { type Deliverable, deliverResult } from './result-delivery.ts';
import { forgetResult } from './result-store.ts';
import type { RunningCommand } from './spawner.ts';
import type { WorkerParts } from './worker-parts.ts';

/** How the slot fared: after trouble it waits a little before it pulls again. */
export type SlotEnd = 'well' | 'trouble';

export interface Attempt {
  readonly id: string;
  readonly deliveryId: string;
  /** Its command has ended and its result waits for a disposition without a slot. */
  readonly kept: boolean;
  /** Its message is held, so another one of it is a copy. */
  readonly held: boolean;
  /** Resolves when the slot may go on. */
  readonly slot: Promise<SlotEnd>;
  /** Resolves when nothing of it is left in this process. */
  readonly finished: Promise<void>;
  /** The broker handed its message out again: this one is settled instead of the one that was lost. */
  adopt(delivery: Delivery): void;
  /** Ends the command for a reason; `graceMs` 0 kills at once. Without effect once the result is on its way, but for `superseded`. */
  end(intent: Intent, graceMs?: number): void;
}

export interface AttemptEvents {
  /** The result waits on without a slot. */
  kept(): void;
  /** `unknown`: nobody knows whether `started` arrived; the same delivery id must be used when the message returns. */
  finished(start: 'unknown' | 'known'): void;
}

export function createAttempt(
  message: DispatchMessage,
  first: Delivery,
  deliveryId: string,
  parts: WorkerParts,
  events: AttemptEvents,
): Attempt {
  const { config, gate, directories } = parts;
  const { attemptId, taskId, scanId, step, tag } = message;
  const log = parts.log.child({ attemptId, taskId, scanId, step, tag });
  const interrupting = new AbortController();
  const superseding = new AbortController();
  const slot = Promise.withResolvers<SlotEnd>();
  const context: AttemptContext = {
    parts,
    message,
    deliveryId,
    folders: attemptFolders(directories.work, attemptId),
    log,
    interrupted: interrupting.signal,
  };
  let delivery = first;
  let intent: Intent | null = null;
  let command: RunningCommand | null = null;
  let delivering = false;
  let kept = false;
  let startKnown = true;
  let settled: 'ack' | 'requeue' | 'dead' | null = null;

  function end(next: Intent, graceMs = config.termGraceMs): void {
    if (intent === null || next.kind === 'superseded') intent = next;
    if (next.kind === 'superseded') superseding.abort();
    interrupting.abort();
    if (!delivering) command?.end(graceMs);
  }

  /** The message's last word; one that is adopted after it gets the same. */
  function settle(how: 'ack' | 'requeue' | 'dead'): void {
    settled = how;
    const sent = how === 'ack' ? delivery.ack() : delivery.nack({ requeue: how === 'requeue' });
    if (sent === 'lost') log.debug({ operation: 'settlement_lost' }, 'its message comes again');
  }

  async function live(): Promise<SlotEnd> {
    const start = await reportStarted(context);
    switch (start.kind) {
      case 'run':
        return act(await work(context, control, start.secrets));
      case 'skip':
        log.info({ operation: 'attempt_skipped', reason: start.reason }, 'not to be run here');
        settle('ack');
        return 'well';
      case 'refused':
        log.error(
          { operation: 'started_refused', detail: start.detail },
          'the api refuses the attempt; its message becomes a dead letter',
        );
        settle('dead');
        return 'trouble';
      case 'unknown':
        startKnown = false;
        if (!interrupting.signal.aborted) gate.shut();
        settle('requeue');
        return 'trouble';
      default:
        return start satisfies never;
    }
  }

  const control = {
    intent: () => intent,
    running(started: RunningCommand) {
      command = started;
      if (interrupting.signal.aborted) started.end(0);
    },
  };

  async function act(done: WorkEnd): Promise<SlotEnd> {
    if (done.kind === 'result') return deliver(done.deliverable);
    // Let go of at once: whoever made the worker do that has taken the attempt from it.
    if (parts.signal.aborted) return 'trouble';
    if (intent?.kind === 'release') return release(intent.reason);
    if (intent?.kind === 'superseded' || done.kind === 'ended') {
      log.info({ operation: 'attempt_superseded' }, 'no longer current: ended, nothing sent');
      settle('ack');
      await clearWork(context);
      return 'well';
    }
    log.error({ operation: 'attempt_interrupted', reason: done.detail }, 'ended through no fault of its own');
    await release('interrupted');
    return 'trouble';
  }

  async function release(reason: Extract<Intent, { kind: 'release' }>['reason']): Promise<SlotEnd> {
    if (await releaseAttempt(context, reason)) settle('ack');
    else settle('requeue');
    await clearWork(context);
    return 'well';
  }

  async function deliver(deliverable: Deliverable): Promise<SlotEnd> {
    delivering = true;
    const ending = deliverResult(deliverable, parts, AbortSignal.any([parts.signal, superseding.signal]));
    if (!(await within(ending, config.resultForMs)) && !parts.signal.aborted) {
      kept = true;
      delivery.nack({ requeue: true });
      log.warn(
        { operation: 'result_kept' },
        'no disposition in time: its message goes back, the result is sent on',
      );
      events.kept();
      slot.resolve('trouble');
    }
    const end = await ending;
    if (end === null && !superseding.signal.aborted) return 'trouble';
    if (end?.disposition === 'unreadable') {
      log.error(
        { operation: 'outputs_unreadable', reason: end.detail },
        'given back: its outputs are here, unreadable',
      );
      await release('interrupted');
      return 'trouble';
    }
    const { disposition, detail } = end ?? { disposition: 'superseded', detail: 'told by the pulse' };
    const level = disposition === 'rejected' || disposition === 'conflict' ? 'error' : 'info';
    log[level](
      { operation: 'result_delivered', disposition, detail: detail || undefined },
      `result ${disposition}`,
    );
    settle('ack');
    // Superseded between the store and the answer, the result is still on disk.
    if (end === null) await forgetResult(directories.results, attemptId);
    await clearWork(context);
    return 'well';
  }

  /** This worker's own trouble (a full disk): the attempt goes back rather than being lost. */
  async function rescue(error: unknown): Promise<SlotEnd> {
    log.error({ operation: 'attempt_fault', reason: messageOf(error) }, "a fault of this worker's own");
    command?.end(0);
    await command?.ended;
    if (parts.signal.aborted) return 'trouble';
    if (delivering) {
      // A result may have been sent, so nothing is given back; whoever gets the message again hears how it stands.
      settle('requeue');
      return 'trouble';
    }
    try {
      await release('interrupted');
    } catch (again) {
      log.error(
        { operation: 'attempt_fault', reason: messageOf(again) },
        'its folder stays until the next start',
      );
    }
    return 'trouble';
  }

  const finished = live()
    .catch(rescue)
    .then((outcome) => {
      kept = false;
      events.finished(startKnown ? 'known' : 'unknown');
      slot.resolve(outcome);
    });

  return {
    id: attemptId,
    deliveryId,
    get kept() {
      return kept;
    },
    get held() {
      return delivery.held;
    },
    slot: slot.promise,
    finished,
    adopt(next) {
      delivery = next;
      if (settled !== null) settle(settled);
    },
    end,
  };
}
