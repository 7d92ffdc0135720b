// What stands in the broker: one direct exchange, one durable queue a tag, and one place for dead letters.
// Only the publisher declares. Each declaration runs on a throwaway channel, because the broker answers a
// declaration that differs from what is there by closing the channel.
import type { Channel } from 'amqplib';
import { deadLetterExchange, deadLetterQueue, dispatchExchange, tagQueue } from '#sonar/contracts/names.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { type AmqpSession, amqpCode } from './amqp-session.ts';

export interface TopologySettings {
  /** `quorum` on RabbitMQ 4.x; 3.10 left fresh quorum queues stuck after a SIGKILL. */
  queueType: 'classic' | 'quorum';
  /** A message that nobody pulled for so long is dead: recovery dispatches its task anew by then. */
  messageTtlMs: number;
}

/** Dead letters are notices, not work; without a reader the oldest go first. */
const deadLetterLimit = 100_000;

/** @throws AMQP's error with its numeric code, or SonarError `unreachable`. */
export async function declareExchanges(session: AmqpSession, signal?: AbortSignal): Promise<void> {
  await session.throwaway(async (channel) => {
    await channel.assertExchange(dispatchExchange, 'direct', { durable: true });
    await channel.assertExchange(deadLetterExchange, 'fanout', { durable: true });
    await channel.assertQueue(deadLetterQueue, { durable: true, maxLength: deadLetterLimit });
    await channel.bindQueue(deadLetterQueue, deadLetterExchange, '');
  }, signal);
}

/** @throws AMQP's error with its numeric code, or SonarError `unreachable`. */
export async function declareTag(
  session: AmqpSession,
  tag: string,
  settings: TopologySettings,
  signal?: AbortSignal,
): Promise<void> {
  await session.throwaway(async (channel) => {
    await channel.assertQueue(tagQueue(tag), {
      durable: true,
      deadLetterExchange,
      messageTtl: settings.messageTtlMs,
      arguments: {
        'x-queue-type': settings.queueType,
        // From 4.0 a quorum queue drops a message after 20 returns; attempts are counted in PostgreSQL.
        ...(settings.queueType === 'quorum' && majorVersion(channel) >= 4 ? { 'x-delivery-limit': -1 } : {}),
      },
    });
    await channel.bindQueue(tagQueue(tag), dispatchExchange, tag);
  }, signal);
}

function majorVersion(channel: Channel): number {
  const { version } = channel.connection.serverProperties;
  return Number.parseInt(version, 10);
}

/** The broker's refusal of a declaration, for people; null when it was no refusal but a loss. */
export function declarationRefusal(error: unknown, what: string): string | null {
  const code = amqpCode(error);
  if (code === 406)
    return `${what} exists with other arguments (queue type, message TTL or dead letters were changed); delete it in the broker when it is empty, or restore the setting`;
  if (code === 403)
    return `the broker's login may not declare ${what}; grant it configure and write on sonar.*`;
  if (code !== null) return `${what} could not be declared: ${messageOf(error)}`;
  return null;
}
