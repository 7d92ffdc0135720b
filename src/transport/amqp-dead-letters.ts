// Somebody reads the dead letters: messages that expired unread, that a worker refused, or that came back too often.
import type { GetMessage } from 'amqplib';
import { deadLetterQueue } from '#sonar/contracts/names.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import type { Service } from '#sonar/platform/service.ts';
import { backoffMs, pause } from '#sonar/platform/wait.ts';
import { amqpCode, createAmqpSession, type LiveChannel } from './amqp-session.ts';
import { declareExchanges } from './amqp-topology.ts';

export interface DeadLetter {
  /** The event's id, as published. */
  messageId: string | null;
  tag: string | null;
  /** AMQP's word: `expired`, `rejected`, `maxlen`, `delivery_limit`. */
  reason: string;
  body: Buffer;
}

const firstIdleMs = 500;
const maxIdleMs = 10_000;

/**
 * Hands each dead letter to `handler` and acks it when the handler resolves. When it throws, the letter goes back
 * and is read again after a pause. Runs in the publisher's role: it declares what it reads.
 */
export function readDeadLetters(
  url: string,
  handler: (letter: DeadLetter) => Promise<void>,
  options: { log: Logger },
): Service {
  const { log } = options;
  const session = createAmqpSession(url, log);
  const stopping = new AbortController();
  let loop: Promise<void> = Promise.resolve();
  let live: LiveChannel | null = null;

  /** True when there was a letter. */
  async function readOne(): Promise<boolean> {
    if (live === null || !live.open) {
      await declareExchanges(session, stopping.signal);
      live = await session.open(stopping.signal);
    }
    const from = live;
    const message = await from.channel.get(deadLetterQueue);
    if (message === false) return false;
    try {
      await handler(parseLetter(message));
    } catch (error) {
      if (from.open) from.channel.nack(message, false, true);
      throw error;
    }
    if (from.open) from.channel.ack(message);
    return true;
  }

  async function run(): Promise<void> {
    let idle = 0;
    while (!stopping.signal.aborted) {
      let read = false;
      try {
        read = await readOne();
      } catch (error) {
        if (!stopping.signal.aborted)
          log.warn(
            { operation: 'dead_letter_failed', code: amqpCode(error), reason: messageOf(error) },
            'not read',
          );
      }
      idle = read ? 0 : idle + 1;
      if (!read) await pause(backoffMs(idle - 1, firstIdleMs, maxIdleMs), stopping.signal);
    }
  }

  return {
    name: 'dead-letter-reader',
    async start() {
      loop = run();
    },
    async stop() {
      stopping.abort();
      await session.close();
      await loop;
    },
  };
}

function parseLetter(message: GetMessage): DeadLetter {
  const deaths: unknown = message.properties.headers?.['x-death'];
  const first = (Array.isArray(deaths) ? deaths[0] : null) as {
    reason?: unknown;
    'routing-keys'?: unknown;
  } | null;
  const keys = first?.['routing-keys'];
  const tag: unknown = Array.isArray(keys) ? keys[0] : null;
  return {
    messageId: typeof message.properties.messageId === 'string' ? message.properties.messageId : null,
    tag: typeof tag === 'string' ? tag : null,
    reason: typeof first?.reason === 'string' ? first.reason : 'unknown',
    body: message.content,
  };
}
