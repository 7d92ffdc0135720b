// The attempts of one incarnation, from before `started` is sent until their disposition is known.
import { type DispatchMessage, dispatchMessageSchema } from '#sonar/contracts/dispatch-message.ts';
import type { DeliveryId } from '#sonar/contracts/ids.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Delivery } from '#sonar/transport/amqp-consumer.ts';
import { type Attempt, createAttempt } from './attempt.ts';
import type { Intent } from './attempt-context.ts';
import { untilAborted } from './gate.ts';
import type { WorkerParts } from './worker-parts.ts';

export interface AttemptsInHand {
  ids(): string[];
  /** Attempts that occupy a slot. */
  busy(): number;
  /** Results that wait without a slot have a bound of their own: as many as there are slots. */
  hasRoom(): boolean;
  /** Resolves when there is room or the signal aborts. */
  room(signal: AbortSignal): Promise<void>;
  /** The attempt that the slot runs now; null when the message was settled or joined to one in hand. */
  take(delivery: Delivery): Attempt | null;
  /** Ends one attempt, if it is in hand. */
  end(attemptId: string, intent: Intent, graceMs?: number): void;
  endAll(intent: Intent, graceMs?: number): void;
  /** Resolves when none is left in hand. */
  drained(): Promise<void>;
}

/** Delivery ids of `started` calls without an answer; enough for every message that can be on its way back. */
const rememberedDeliveries = 4096;

export function createAttemptsInHand(parts: WorkerParts): AttemptsInHand {
  const { log, config } = parts;
  const attempts = new Map<string, Attempt>();
  const unanswered = new Map<string, string>();
  let change = Promise.withResolvers<void>();

  function changed(): void {
    change.resolve();
    change = Promise.withResolvers<void>();
  }

  const keptCount = () => [...attempts.values()].filter(({ kept }) => kept).length;
  const hasRoom = () => keptCount() < config.slots;

  function begin(message: DispatchMessage, delivery: Delivery): Attempt {
    const { attemptId } = message;
    const deliveryId = unanswered.get(attemptId) ?? newId<DeliveryId>();
    unanswered.delete(attemptId);
    const attempt = createAttempt(message, delivery, deliveryId, parts, {
      kept: changed,
      finished(start) {
        attempts.delete(attemptId);
        if (start === 'unknown') remember(attemptId, deliveryId);
        changed();
      },
    });
    attempts.set(attemptId, attempt);
    return attempt;
  }

  function remember(attemptId: string, deliveryId: string): void {
    unanswered.set(attemptId, deliveryId);
    const [oldest] = unanswered.keys();
    if (unanswered.size > rememberedDeliveries && oldest !== undefined) unanswered.delete(oldest);
  }

  return {
    ids: () => [...attempts.keys()],
    busy: () => attempts.size - keptCount(),
    hasRoom,
    async room(signal) {
      while (!hasRoom() && !signal.aborted) await untilAborted(change.promise, signal);
    },
    take(delivery) {
      const message = parseMessage(delivery.body);
      if ('problem' in message) {
        log.error(
          { operation: 'message_refused', tag: delivery.tag, problem: message.problem },
          'no dispatch message; it becomes a dead letter',
        );
        delivery.nack({ requeue: false });
        return null;
      }
      const { attemptId } = message.dispatch;
      const present = attempts.get(attemptId);
      if (present === undefined) return begin(message.dispatch, delivery);
      if (present.held) {
        // The publisher sent it twice; the first copy keeps the attempt safe.
        log.info({ operation: 'message_copy_dropped', attemptId }, 'a second copy of a message in hand');
        delivery.ack();
      } else {
        log.info({ operation: 'delivery_adopted', attemptId }, 'the broker handed out again what is in hand');
        present.adopt(delivery);
      }
      return null;
    },
    end: (attemptId, intent, graceMs) => attempts.get(attemptId)?.end(intent, graceMs),
    endAll(intent, graceMs) {
      for (const attempt of attempts.values()) attempt.end(intent, graceMs);
    },
    async drained() {
      while (attempts.size > 0) await change.promise;
    },
  };
}

/** The problem names fields, never values: the message holds a credential. */
function parseMessage(body: Buffer): { dispatch: DispatchMessage } | { problem: string } {
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8'));
  } catch {
    return { problem: 'not JSON' };
  }
  const parsed = dispatchMessageSchema.safeParse(json);
  if (parsed.success) return { dispatch: parsed.data };
  return {
    problem: parsed.error.issues
      .map(({ path, code }) => `${path.join('.') || 'message'}: ${code}`)
      .join(', ')
      .slice(0, 500),
  };
}
