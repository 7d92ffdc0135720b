// One message at a time, from any of a worker's tags. `basic.get` in turn, because a consumer per tag would hold a
// message of every tag while one runs, and a global prefetch closes the connection on quorum queues.
import type { GetMessage } from 'amqplib';
import { tagQueue } from '#sonar/contracts/names.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs, pause } from '#sonar/platform/wait.ts';
import { type AmqpSession, amqpCode, createAmqpSession, type LiveChannel } from './amqp-session.ts';

/** `lost`: its channel is gone, so the broker hands the message out again whatever is said here. */
export type Settlement = 'sent' | 'lost';

export interface Delivery {
  readonly tag: string;
  readonly body: Buffer;
  readonly redelivered: boolean;
  /** False from the moment the channel is lost or the message is settled. */
  readonly held: boolean;
  ack(): Settlement;
  /** Without `requeue` the message becomes a dead letter. */
  nack(options: { requeue: boolean }): Settlement;
}

export interface Puller {
  /** The next message of any tag, in turn; waits for one, with an idle back-off. Null once the signal aborts. */
  next(signal: AbortSignal): Promise<Delivery | null>;
  /** Gives every held message back to the broker by closing the connection. */
  close(): Promise<void>;
}

export interface PullerOptions {
  log: Logger;
  /** The longest a message waits for an idle worker. */
  maxIdleMs?: number;
  /** How long a queue that is not there counts as empty: the worker never declares. */
  missingMs?: number;
}

const firstIdleMs = 10;

/** @throws SonarError `configuration` when `url` is no AMQP address. */
export function createPuller(url: string, tags: readonly string[], options: PullerOptions): Puller {
  const { log, maxIdleMs = 500, missingMs = 2_000 } = options;
  const session = createAmqpSession(url, log);
  // Each held message has a channel of its own: when the broker closes one (acknowledgement timeout, a queue that
  // was deleted), the messages of the other slots stay held.
  const free: LiveChannel[] = [];
  const missingUntil = new Map<string, number>();
  const closing = new AbortController();
  let cursor = 0;
  let idle = 0;
  let turn: Promise<unknown> = Promise.resolve();

  async function getFrom(tag: string, signal: AbortSignal): Promise<Delivery | null> {
    let live = free.pop();
    while (live !== undefined && !live.open) live = free.pop();
    live ??= await session.open(signal);
    try {
      const message = await live.channel.get(tagQueue(tag));
      if (message !== false) return bind(tag, message, live);
      free.push(live);
      return null;
    } catch (error) {
      const code = amqpCode(error);
      if (code !== 404 && code !== 403 && code !== 405) throw error;
      missingUntil.set(tag, performance.now() + missingMs);
      const details = { operation: 'queue_unavailable', queue: tagQueue(tag), reason: messageOf(error) };
      if (code === 404) log.debug(details, 'no such queue yet; it counts as empty');
      else log.warn(details, 'this login may not read the queue; ask for its permission');
      return null;
    }
  }

  function bind(tag: string, message: GetMessage, live: LiveChannel): Delivery {
    let settled = false;
    const settle = (send: () => void): Settlement => {
      if (settled || !live.open) return 'lost';
      settled = true;
      try {
        send();
      } catch {
        return 'lost';
      }
      free.push(live);
      return 'sent';
    };
    return {
      tag,
      body: message.content,
      redelivered: message.fields.redelivered,
      get held() {
        return !settled && live.open;
      },
      ack: () => settle(() => live.channel.ack(message)),
      nack: ({ requeue }) => settle(() => live.channel.nack(message, false, requeue)),
    };
  }

  /** One look at every tag, beginning after the one that gave the last message. */
  async function round(signal: AbortSignal): Promise<Delivery | null> {
    for (let looked = 0; looked < tags.length && !signal.aborted; looked += 1) {
      const tag = tags[cursor % tags.length] as string;
      cursor += 1;
      if ((missingUntil.get(tag) ?? 0) > performance.now()) continue;
      const delivery = await getFrom(tag, signal);
      if (delivery !== null) return delivery;
    }
    return null;
  }

  async function next(signal: AbortSignal): Promise<Delivery | null> {
    while (!signal.aborted) {
      try {
        const delivery = await round(signal);
        if (delivery !== null) {
          idle = 0;
          return delivery;
        }
      } catch (error) {
        if (!signal.aborted)
          log.warn(
            { operation: 'pull_failed', address: session.address, reason: messageOf(error) },
            'pull failed',
          );
      }
      await pause(backoffMs(idle, firstIdleMs, maxIdleMs), signal);
      idle += 1;
    }
    return null;
  }

  return {
    // Slots take turns, so that the broker is asked once however many of them are idle.
    next(signal) {
      const either = AbortSignal.any([signal, closing.signal]);
      const mine = turn.then(() => next(either));
      turn = mine;
      return mine;
    },
    async close() {
      closing.abort();
      await closeSession(session, turn);
    },
  };
}

async function closeSession(session: AmqpSession, turn: Promise<unknown>): Promise<void> {
  await session.close();
  await turn.catch(() => undefined);
}
