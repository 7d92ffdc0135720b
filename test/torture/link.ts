// A TCP relay between one process and one service, whose connections can be cut, refused, held and slowed.
import { connect, createServer, type Server, type Socket } from 'node:net';

const loopback = '127.0.0.1';

export interface Link {
  readonly name: string;
  readonly port: number;
  /** Ends every connection at once; new ones are taken. */
  cut(): void;
  /** Ends every connection and takes no new one until `heal`. */
  part(): void;
  /** Nothing passes, in either direction, until `heal`; connections stay. */
  hold(): void;
  /** Every piece of data takes so much longer. */
  slow(ms: number): void;
  heal(): void;
  close(): Promise<void>;
}

export async function openLink(name: string, targetPort: number): Promise<Link> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let parted = false;
  let delayMs = 0;
  let held: PromiseWithResolvers<void> | undefined;

  const endAll = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };

  async function passage(): Promise<void> {
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    while (held !== undefined) await held.promise;
  }

  function pump(from: Socket, to: Socket): void {
    const write = (chunk: Buffer): void => {
      if (to.destroyed || to.write(chunk)) from.resume();
      else to.once('drain', () => from.resume());
    };
    from.on('data', (chunk: Buffer) => {
      from.pause();
      // The usual case keeps to one turn of the loop.
      if (delayMs === 0 && held === undefined) write(chunk);
      else void passage().then(() => write(chunk));
    });
    from.on('end', () => to.end());
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
  }

  const heal = (): void => {
    parted = false;
    delayMs = 0;
    held?.resolve();
    held = undefined;
  };

  const server: Server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    if (parted) {
      near.destroy();
      return;
    }
    const far = connect({ host: loopback, port: targetPort, allowHalfOpen: true, noDelay: true });
    const pair = [near, far] as const;
    pairs.add(pair);
    near.on('close', () => pairs.delete(pair));
    pump(near, far);
    pump(far, near);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: loopback, port: 0 }, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error(`link ${name} has no port`);

  return {
    name,
    port: address.port,
    cut: endAll,
    part() {
      parted = true;
      endAll();
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
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      endAll();
      await closed;
    },
  };
}
