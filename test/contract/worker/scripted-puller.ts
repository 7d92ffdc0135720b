// A broker of one queue in memory, with a broker's manners: what is not acked comes back.
import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import type { Delivery, Puller } from '#sonar/transport/amqp-consumer.ts';
import type { Watch } from './watch.ts';

interface Queued {
  tag: string;
  body: Buffer;
  redelivered: boolean;
}

export interface ScriptedPuller extends Puller {
  push(message: DispatchMessage | string): void;
  /** Every channel closes: what is held is lost and stands in the queue again. */
  loseChannels(): void;
  readonly queued: number;
  readonly held: number;
  readonly acked: number;
  readonly requeued: number;
  readonly dead: string[];
  readonly delivered: number;
}

export function createScriptedPuller(watch: Watch): ScriptedPuller {
  const queue: Queued[] = [];
  const held = new Map<Queued, () => void>();
  const counts = { acked: 0, requeued: 0, delivered: 0 };
  const dead: string[] = [];

  function deliver(item: Queued): Delivery {
    let live = true;
    held.set(item, () => {
      live = false;
      queue.unshift({ ...item, redelivered: true });
    });
    counts.delivered += 1;
    const settle = (then: () => void) => {
      if (!live) return 'lost' as const;
      live = false;
      held.delete(item);
      then();
      watch.changed();
      return 'sent' as const;
    };
    return {
      tag: item.tag,
      body: item.body,
      redelivered: item.redelivered,
      get held() {
        return live;
      },
      ack: () => settle(() => void (counts.acked += 1)),
      nack: ({ requeue }) =>
        settle(() => {
          if (!requeue) dead.push(item.body.toString());
          else {
            counts.requeued += 1;
            queue.unshift({ ...item, redelivered: true });
          }
        }),
    };
  }

  return {
    push(message) {
      const body = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
      queue.push({ tag: typeof message === 'string' ? 'probe' : message.tag, body, redelivered: false });
      watch.changed();
    },
    loseChannels() {
      for (const lose of held.values()) lose();
      held.clear();
      watch.changed();
    },
    async next(signal) {
      const aborted = () => watch.changed();
      signal.addEventListener('abort', aborted, { once: true });
      await watch.until('a message', () => signal.aborted || queue.length > 0, 2 ** 31 - 1);
      signal.removeEventListener('abort', aborted);
      const item = signal.aborted ? undefined : queue.shift();
      if (item === undefined) return null;
      const delivery = deliver(item);
      watch.changed();
      return delivery;
    },
    async close() {
      for (const lose of held.values()) lose();
      held.clear();
    },
    get queued() {
      return queue.length;
    },
    get held() {
      return held.size;
    },
    get acked() {
      return counts.acked;
    },
    get requeued() {
      return counts.requeued;
    },
    get delivered() {
      return counts.delivered;
    },
    dead,
  };
}
