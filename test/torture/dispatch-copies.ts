// Messages that come more than once: copies of what was dispatched, sent to the same queues again, at once and much later.
import { connect } from 'amqplib';
import { dispatchExchange } from '#sonar/contracts/names.ts';
import { pause } from '#sonar/platform/wait.ts';
import { chosen } from './schedule.ts';

export interface DispatchCopies {
  /** Listens for so long, then sends everything twice more, and some of what it heard at earlier times. */
  duplicate(tags: readonly string[], ms: number, share: number, signal: AbortSignal): Promise<string>;
}

interface Copy {
  tag: string;
  content: Buffer;
  properties: object;
}

const kept = 500;
const oldOnesSent = 10;

export function createDispatchCopies(amqpUrl: string): DispatchCopies {
  const heard: Copy[] = [];
  return {
    async duplicate(tags, ms, share, signal) {
      const connection = await connect(amqpUrl, { noDelay: true, timeout: 5_000 });
      // A broker that is killed meanwhile ends this too; unheard, the error would end the process.
      connection.on('error', () => undefined);
      try {
        const channel = await connection.createConfirmChannel();
        channel.on('error', () => undefined);
        const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true });
        for (const tag of tags) await channel.bindQueue(queue, dispatchExchange, tag);
        const fresh: Copy[] = [];
        await channel.consume(
          queue,
          (message) => {
            if (message === null) return;
            const { deliveryMode, contentType, messageId, headers } = message.properties;
            fresh.push({
              tag: message.fields.routingKey,
              content: message.content,
              properties: { deliveryMode, contentType, messageId, headers },
            });
          },
          { noAck: true },
        );
        await pause(ms, signal);
        await channel.deleteQueue(queue);
        const old =
          heard.length === 0
            ? []
            : Array.from({ length: oldOnesSent }, (_, index) =>
                chosen(heard, (share + index / oldOnesSent) % 1),
              );
        for (const { tag, content, properties } of [...fresh, ...fresh, ...old])
          channel.publish(dispatchExchange, tag, content, properties);
        await channel.waitForConfirms();
        heard.push(...fresh);
        heard.splice(0, Math.max(0, heard.length - kept));
        return `${fresh.length} new message(s) twice more, ${old.length} old one(s)`;
      } finally {
        await connection.close().catch(() => undefined);
      }
    },
  };
}
