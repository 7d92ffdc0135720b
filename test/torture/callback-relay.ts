// What stands between one caller and the apis: takes turns among them, and can tamper with signed callbacks as a bad
// network would. It never changes a byte: repeating, holding back and losing is all that a network can do to what is signed.
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import { pause } from '#sonar/platform/wait.ts';
import type { Random } from './random.ts';

const loopback = '127.0.0.1';
const maxBodyBytes = 64 * 1024 * 1024;
/** Longer than any answer takes that somebody still waits for. */
const answerWithinMs = 60_000;

export type Tampering = 'none' | 'repeated' | 'reordered' | 'delayed' | 'late' | 'unanswered';

export interface CallbackRelay {
  readonly name: string;
  readonly port: number;
  tamper(how: Tampering): void;
  /** Ends every connection at once. */
  cut(): void;
  /** Takes no request until `heal`. */
  part(): void;
  /** Answers nothing until `heal`. */
  hold(): void;
  slow(ms: number): void;
  heal(): void;
  close(): Promise<void>;
}

interface Call {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}
interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** The apis in turn; one that cannot be reached is passed over. */
export class ApiPool {
  readonly #ports: readonly number[];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  #turn = 0;

  constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  /** Rejects when no api takes the call, or the one that took it breaks off. */
  async call(call: Call): Promise<Answer> {
    let last: unknown;
    for (let tried = 0; tried < this.#ports.length; tried += 1) {
      this.#turn += 1;
      try {
        return await this.#send(this.#ports[this.#turn % this.#ports.length] as number, call);
      } catch (error) {
        last = error;
        if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') break;
      }
    }
    throw last;
  }

  #send(port: number, { method, path, headers, body }: Call): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const outgoing = request(
      { host: loopback, port, method, path, headers, agent: this.#agent, timeout: answerWithinMs },
      (incoming) => {
        bodyOf(incoming).then(
          (answer) =>
            resolve({ status: incoming.statusCode ?? 502, headers: incoming.headers, body: answer }),
          reject,
        );
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('the api does not answer')));
    outgoing.on('error', reject);
    outgoing.end(body);
    return promise;
  }

  close(): void {
    this.#agent.destroy();
  }
}

export async function openCallbackRelay(name: string, pool: ApiPool, random: Random): Promise<CallbackRelay> {
  let tampering: Tampering = 'none';
  let parted = false;
  let delayMs = 0;
  let held: PromiseWithResolvers<void> | undefined;
  const closing = new AbortController();

  const repeatLater = async (call: Call, afterMs: number): Promise<void> => {
    await pause(afterMs, closing.signal);
    if (!closing.signal.aborted) await pool.call(call).catch(() => undefined);
  };

  /** `null`: the caller gets no answer. */
  async function tampered(call: Call): Promise<Answer | null> {
    switch (tampering) {
      case 'none':
        return pool.call(call);
      case 'repeated': {
        // Some at the same time, on whichever api has its turn, and one after the answer.
        const [first] = await Promise.all([
          pool.call(call),
          ...Array.from({ length: random.between(0, 2) }, () => repeatLater(call, 0)),
        ]);
        void repeatLater(call, random.between(0, 3_000));
        return first;
      }
      case 'reordered':
        await pause(random.between(0, 1_500), closing.signal);
        return pool.call(call);
      case 'delayed':
        await pause(random.between(1_000, 6_000), closing.signal);
        return pool.call(call);
      case 'late':
        // The caller believes it lost and sends it again; the first one arrives all the same, much later.
        if (random.next() < 0.5) return pool.call(call);
        void repeatLater(call, random.between(2_000, 15_000));
        return null;
      case 'unanswered': {
        const answer = await pool.call(call);
        return random.next() < 0.5 ? answer : null;
      }
    }
  }

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const call: Call = {
      method: incoming.method ?? 'GET',
      path: incoming.url ?? '/',
      headers: incoming.headers,
      body: await bodyOf(incoming),
    };
    if (delayMs > 0) await pause(delayMs, closing.signal);
    while (held !== undefined) await held.promise;
    const answer = parted ? null : await tampered(call);
    if (answer === null || parted) {
      incoming.socket.destroy();
      return;
    }
    // Lengths are set anew; what belongs to one hop stays there.
    const {
      connection: _hop,
      'transfer-encoding': _coding,
      'keep-alive': _keep,
      ...headers
    } = answer.headers;
    outgoing.writeHead(answer.status, headers);
    outgoing.end(answer.body);
  }

  const heal = (): void => {
    parted = false;
    delayMs = 0;
    tampering = 'none';
    held?.resolve();
    held = undefined;
  };

  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: loopback, port: 0 }, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error(`relay ${name} has no port`);
  return {
    name,
    port: address.port,
    tamper(how) {
      tampering = how;
    },
    cut: () => server.closeAllConnections(),
    part() {
      parted = true;
      server.closeAllConnections();
    },
    hold() {
      held ??= Promise.withResolvers<void>();
    },
    slow(ms) {
      delayMs = ms;
    },
    heal,
    async close() {
      heal();
      closing.abort();
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      server.closeAllConnections();
      await closed;
    },
  };
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) throw new Error(`a body of more than ${maxBodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
