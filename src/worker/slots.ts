import { messageOf } from '#sonar/platform/errors.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import type { Puller } from '#sonar/transport/amqp-consumer.ts';
import type { AttemptsInHand } from './attempts-in-hand.ts';
import type { WorkerParts } from './worker-parts.ts';

/** After trouble a slot waits, so that a message which goes back to the head of its queue does not spin. */
const firstTroubleMs = 500;
const maxTroubleMs = 30_000;

/** One slot: a message at a time, until `pulling` aborts and the last attempt has left the slot. */
export async function runSlot(
  puller: Puller,
  attempts: AttemptsInHand,
  parts: WorkerParts,
  pulling: AbortSignal,
): Promise<void> {
  const { gate, log } = parts;
  let troubles = 0;
  while (!pulling.aborted) {
    await gate.opened(pulling);
    await attempts.room(pulling);
    if (pulling.aborted) return;
    const delivery = await puller.next(AbortSignal.any([pulling, gate.signal]));
    if (delivery === null) continue;
    if (pulling.aborted) {
      delivery.nack({ requeue: true });
      return;
    }
    let end: 'well' | 'trouble' = 'well';
    try {
      end = (await attempts.take(delivery)?.slot) ?? 'well';
    } catch (error) {
      log.error({ operation: 'slot_fault', reason: messageOf(error) }, 'slot fault');
      delivery.nack({ requeue: true });
      end = 'trouble';
    }
    troubles = end === 'trouble' ? troubles + 1 : 0;
    if (troubles > 0)
      await pause(jittered(backoffMs(troubles - 1, firstTroubleMs, maxTroubleMs), Math.random()), pulling);
  }
}
