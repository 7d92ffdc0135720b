// One connection to the broker that comes back by itself. What was got or sent on a channel belongs to that
// channel alone: after a loss there is a new channel with a higher generation, and nothing of the old one can be
// settled on it by mistake (delivery tags start at 1 on every channel).
import { type Channel, type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';

/** Beats a second either side must miss two of before a dead peer is noticed. */
const heartbeatSeconds = 10;
const connectTimeoutMs = 10_000;
const closeTimeoutMs = 3_000;
const firstBackoffMs = 200;
const maxBackoffMs = 10_000;

/** A channel of one generation. `open` turns false, once and for ever, before anything else hears of the loss. */
export interface LiveChannel<Kind extends Channel = Channel> {
  readonly generation: number;
  readonly channel: Kind;
  readonly open: boolean;
  /** Why it closed; null while it is open. `code` is AMQP's reply code where the broker gave one. */
  readonly loss: { code: number | null; message: string } | null;
}

export interface AmqpSession {
  /** Host, port and virtual host: what logs and messages may show of the address. */
  readonly address: string;
  /** Counts connections; what was declared on an older one may be gone with its broker. */
  readonly epoch: number;
  /** @throws SonarError `unreachable`, after the wait that the last failure imposed. */
  open(signal?: AbortSignal): Promise<LiveChannel>;
  /** @throws SonarError `unreachable` */
  openConfirm(signal?: AbortSignal): Promise<LiveChannel<ConfirmChannel>>;
  /**
   * Runs `use` on a channel of its own, for what the broker answers with a closed channel.
   * @throws what `use` throws, with AMQP's numeric `code`, or SonarError `unreachable`.
   */
  throwaway<T>(use: (channel: Channel) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Gives up the connection that is there: its channels are lost, the next `open` makes another. */
  abandon(reason: string): void;
  close(): Promise<void>;
}

/** AMQP's reply code of an error, where it has one: 404 no such queue, 406 other arguments, 403 refused. */
export function amqpCode(error: unknown): number | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'number' ? code : null;
}

/** @throws SonarError `configuration` when `url` is no AMQP address; it never repeats the address. */
export function createAmqpSession(url: string, log: Logger): AmqpSession {
  const { target, address } = parseAddress(url);
  let connection: ChannelModel | null = null;
  let connecting: Promise<ChannelModel> | null = null;
  let closed = false;
  let epoch = 0;
  let generation = 0;
  let failures = 0;
  let notBefore = 0;
  /** Why the connection that is being lost is lost, for those whose channel it takes along. */
  let lossReason: string | null = null;

  async function connectOnce(): Promise<ChannelModel> {
    try {
      const model = await connect(target, { noDelay: true, keepAlive: true, timeout: connectTimeoutMs });
      // First of all, so that no loss is unheard, which would end the process. It comes before the channels close; the
      // loss itself arrives as `close`.
      model.on('error', (error) => {
        lossReason ??= messageOf(error);
      });
      if (closed) {
        await model.close().catch(() => undefined);
        throw new Error('the session was closed');
      }
      epoch += 1;
      failures = 0;
      connection = model;
      lossReason = null;
      model.on('blocked', (reason) =>
        log.warn({ operation: 'broker_blocked', address, reason }, 'the broker takes no messages'),
      );
      model.on('close', (error) => {
        // One that was abandoned or closed has been taken away already.
        if (connection !== model) return;
        connection = null;
        const reason = lossReason ?? messageOf(error);
        log.warn({ operation: 'broker_connection_lost', address, reason }, 'connection lost');
      });
      log.debug({ operation: 'broker_connected', address, epoch }, 'connected');
      return model;
    } catch (error) {
      notBefore =
        performance.now() + jittered(backoffMs(failures, firstBackoffMs, maxBackoffMs), Math.random());
      failures += 1;
      const refused = amqpCode(error) === 403 || /ACCESS[_-]REFUSED/.test(messageOf(error));
      throw new SonarError(
        'unreachable',
        refused
          ? `the broker at ${address} refused the login; check user, password and virtual host in SONAR_AMQP_URL`
          : `the broker at ${address} does not answer (${messageOf(error)}); check SONAR_AMQP_URL and that it runs`,
        { cause: error },
      );
    }
  }

  async function model(signal?: AbortSignal): Promise<ChannelModel> {
    if (closed) throw new SonarError('unreachable', `the session with ${address} is closed`);
    if (connection !== null) return connection;
    const waitMs = notBefore - performance.now();
    if (waitMs > 0) await pause(waitMs, signal);
    if (signal?.aborted)
      throw new SonarError('unreachable', `the wait for the broker at ${address} was given up`);
    if (connection !== null) return connection;
    connecting ??= connectOnce().finally(() => {
      connecting = null;
    });
    return connecting;
  }

  async function openChannel<Kind extends Channel>(
    make: (from: ChannelModel) => Promise<Kind>,
    signal?: AbortSignal,
  ): Promise<LiveChannel<Kind>> {
    const from = await model(signal);
    const channel = await make(from).catch((error: unknown) => {
      throw new SonarError('unreachable', `the broker at ${address} gave no channel (${messageOf(error)})`, {
        cause: error,
      });
    });
    generation += 1;
    const live = { generation, channel, open: true, loss: null as LiveChannel['loss'] };
    channel.on('error', (error) => {
      live.open = false;
      live.loss = { code: amqpCode(error), message: messageOf(error) };
    });
    // Before amqplib's own listener, which fails the unconfirmed messages: they must see a closed channel.
    channel.prependListener('close', () => {
      live.open = false;
      live.loss ??= { code: null, message: lossReason ?? 'the channel was closed' };
    });
    return live;
  }

  return {
    address,
    get epoch() {
      return epoch;
    },
    open: (signal) => openChannel((from) => from.createChannel(), signal),
    openConfirm: (signal) => openChannel((from) => from.createConfirmChannel(), signal),
    async throwaway(use, signal) {
      const live = await openChannel((from) => from.createChannel(), signal);
      try {
        return await use(live.channel);
      } finally {
        if (live.open) await live.channel.close().catch(() => undefined);
      }
    },
    abandon(reason) {
      const lost = connection;
      if (lost === null) return;
      connection = null;
      lossReason = reason;
      log.warn({ operation: 'broker_connection_abandoned', address, reason }, 'connection given up');
      lost.close().catch(() => undefined);
    },
    async close() {
      closed = true;
      const last = connection;
      connection = null;
      if (last === null) return;
      const bound = new AbortController();
      await Promise.race([last.close().catch(() => undefined), pause(closeTimeoutMs, bound.signal)]);
      bound.abort();
    },
  };
}

function parseAddress(url: string): { target: string; address: string } {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (error) {
    throw new SonarError(
      'configuration',
      'SONAR_AMQP_URL is no address; write amqp://user:password@host:5672/',
      { cause: error },
    );
  }
  if (parsed.protocol !== 'amqp:' && parsed.protocol !== 'amqps:')
    throw new SonarError(
      'configuration',
      `SONAR_AMQP_URL starts with "${parsed.protocol}"; write amqp:// or amqps://`,
    );
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(heartbeatSeconds));
  return { target: parsed.href, address: `${parsed.host}${parsed.pathname}` };
}
