// Messages to tag queues, each with an outcome that the broker gave or that its silence means.
import type { ConfirmChannel } from 'amqplib';
import { dispatchExchange, tagQueue } from '#sonar/contracts/names.ts';
import { isSonarError, messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { pause } from '#sonar/platform/wait.ts';
import { createAmqpSession, type LiveChannel } from './amqp-session.ts';
import { declarationRefusal, declareExchanges, declareTag, type TopologySettings } from './amqp-topology.ts';

export interface OutgoingMessage {
  /** The event's id; the message's id on the wire. */
  key: string;
  tag: string;
  body: Buffer;
}

export interface Published {
  key: string;
  /**
   * `confirmed`: in its queue. `returned`: no queue took it, or its tag is parked. `nacked`: the broker refused it.
   * `lost`: nobody knows, even after a second send; it may be in its queue once or twice.
   */
  outcome: 'confirmed' | 'returned' | 'nacked' | 'lost';
  reason?: string;
}

export interface Publisher {
  /** Outcomes in the order of the batch. Never throws for what the broker does; calls take turns. */
  publish(batch: readonly OutgoingMessage[]): Promise<Published[]>;
  /** Tags whose queue could not be declared, with the reason. */
  parked(): ReadonlyMap<string, string>;
  close(): Promise<void>;
}

export interface PublisherOptions extends Partial<TopologySettings> {
  log: Logger;
  /** Unconfirmed messages at a time; 256 gave six times the rate of 1, and more gave nothing. */
  window?: number;
  /** A broker that is out of memory confirms nothing and says nothing: after so long its connection is given up. */
  confirmTimeoutMs?: number;
  /** How long a tag whose declaration failed is left alone. */
  parkMs?: number;
}

/** Bodies carry whole command lines: a window of large ones must not fill memory. */
const maxBytesInWindow = 16 * 1024 * 1024;

/** @throws SonarError `configuration` when `url` is no AMQP address. */
export function createPublisher(url: string, options: PublisherOptions): Publisher {
  const { log, window = 256, confirmTimeoutMs = 30_000, parkMs = 60_000 } = options;
  const settings: TopologySettings = {
    queueType: options.queueType ?? 'classic',
    messageTtlMs: options.messageTtlMs ?? 3_600_000,
  };
  const session = createAmqpSession(url, log);
  const closing = new AbortController();
  const parked = new Map<string, { reason: string; until: number }>();
  let declared = { epoch: 0, exchanges: false, tags: new Set<string>() };
  let live: LiveChannel<ConfirmChannel> | null = null;
  let turn: Promise<unknown> = Promise.resolve();

  /** @throws SonarError `unreachable`; refusals are returned. */
  async function declare(what: string, run: () => Promise<void>): Promise<string | null> {
    try {
      await run();
      return null;
    } catch (error) {
      const refusal = isSonarError(error) ? null : declarationRefusal(error, what);
      if (refusal === null) throw error;
      log.error({ operation: 'broker_declaration_refused', what, reason: refusal }, 'declaration refused');
      return refusal;
    }
  }

  /** Why messages of `tag` cannot go now; null when its queue is there. */
  async function ready(tag: string): Promise<string | null> {
    if (declared.epoch !== session.epoch)
      declared = { epoch: session.epoch, exchanges: false, tags: new Set() };
    const left = parked.get(tag);
    if (left !== undefined && left.until > performance.now()) return left.reason;
    if (declared.tags.has(tag)) return null;
    let refusal: string | null = null;
    if (!declared.exchanges) {
      refusal = await declare('the exchanges sonar.*', () => declareExchanges(session, closing.signal));
      declared.exchanges = refusal === null;
    }
    refusal ??= await declare(`queue ${tagQueue(tag)}`, () =>
      declareTag(session, tag, settings, closing.signal),
    );
    if (refusal === null) {
      parked.delete(tag);
      declared.tags.add(tag);
      return null;
    }
    parked.set(tag, { reason: `parked: ${refusal}`, until: performance.now() + parkMs });
    return `parked: ${refusal}`;
  }

  /** One send of each; an outcome is put for all that the broker answered and `lost` for the others. */
  async function send(batch: readonly OutgoingMessage[], outcomes: Map<string, Published>): Promise<void> {
    const sendable: OutgoingMessage[] = [];
    try {
      if (live === null || !live.open) {
        live = await session.openConfirm(closing.signal);
        live.channel.on('return', (message) => returns.add(String(message.properties.messageId)));
      }
      for (const message of batch) {
        const refusal = await ready(message.tag);
        if (refusal === null) sendable.push(message);
        else outcomes.set(message.key, { key: message.key, outcome: 'returned', reason: refusal });
      }
      await sendWindowed(live, sendable, outcomes);
    } catch (error) {
      for (const { key } of batch)
        if (!outcomes.has(key)) outcomes.set(key, { key, outcome: 'lost', reason: messageOf(error) });
    }
  }

  // A return arrives before the ack of the same message, so at the ack it is known.
  const returns = new Set<string>();

  async function sendWindowed(
    channel: LiveChannel<ConfirmChannel>,
    batch: readonly OutgoingMessage[],
    outcomes: Map<string, Published>,
  ): Promise<void> {
    let inFlight = 0;
    let bytes = 0;
    let next = 0;
    const settled = Promise.withResolvers<void>();
    const timeout = new AbortController();
    const watch = () =>
      void pause(confirmTimeoutMs, timeout.signal).then(() => {
        if (!timeout.signal.aborted) session.abandon(`no confirm for ${confirmTimeoutMs} ms`);
      });

    const settle = (message: OutgoingMessage, failure: unknown) => {
      inFlight -= 1;
      bytes -= message.body.length;
      outcomes.set(message.key, outcomeOf(channel, message, failure));
      fill();
    };
    const fill = () => {
      while (
        channel.open &&
        next < batch.length &&
        inFlight < window &&
        (inFlight === 0 || bytes < maxBytesInWindow)
      ) {
        const message = batch[next] as OutgoingMessage;
        next += 1;
        inFlight += 1;
        bytes += message.body.length;
        const properties = {
          persistent: true,
          mandatory: true,
          messageId: message.key,
          contentType: 'application/json',
        };
        channel.channel.publish(dispatchExchange, message.tag, message.body, properties, (failure: unknown) =>
          settle(message, failure),
        );
      }
      if (inFlight > 0) return;
      for (const { key } of batch.slice(next))
        outcomes.set(key, {
          key,
          outcome: 'lost',
          reason: channel.loss?.message ?? 'the channel was closed',
        });
      settled.resolve();
    };

    watch();
    try {
      fill();
      await settled.promise;
    } finally {
      timeout.abort();
    }
  }

  function outcomeOf(channel: LiveChannel, { key, tag }: OutgoingMessage, failure: unknown): Published {
    if (failure !== null && failure !== undefined)
      return channel.open
        ? { key, outcome: 'nacked', reason: 'the broker refused the message' }
        : { key, outcome: 'lost', reason: channel.loss?.message ?? messageOf(failure) };
    if (!returns.delete(key)) return { key, outcome: 'confirmed' };
    // Somebody deleted the queue: the next publish declares it again.
    declared.tags.delete(tag);
    return { key, outcome: 'returned', reason: `no queue is bound for tag ${tag}` };
  }

  async function publish(batch: readonly OutgoingMessage[]): Promise<Published[]> {
    const outcomes = new Map<string, Published>();
    await send(batch, outcomes);
    const lost = batch.filter(({ key }) => outcomes.get(key)?.outcome === 'lost');
    // A second loss means that the broker is down, not that one channel died under the messages.
    if (lost.length > 0 && !closing.signal.aborted) {
      for (const { key } of lost) outcomes.delete(key);
      live = null;
      await send(lost, outcomes);
    }
    return batch.map(({ key }) => outcomes.get(key) ?? { key, outcome: 'lost', reason: 'no answer' });
  }

  return {
    publish(batch) {
      const mine = turn.then(() => publish(batch));
      turn = mine;
      return mine;
    },
    parked: () => new Map([...parked].map(([tag, { reason }]) => [tag, reason])),
    async close() {
      closing.abort();
      // Whoever still waits for confirms gets `lost`.
      await session.close();
      await turn.catch(() => undefined);
    },
  };
}
