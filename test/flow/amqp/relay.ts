// A wire to the broker that can be cut: every connection through it breaks, later ones pass again.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { joinSockets } from '../../fixtures/joined-sockets.ts';

export interface Relay extends AsyncDisposable {
  readonly url: string;
  cut(): void;
  /** Cuts once `bytes` have gone to the broker from now on. */
  cutAfter(bytes: number): Promise<void>;
}

export async function openRelay(target: string): Promise<Relay> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  let sent = 0;
  let onSent: (() => void) | null = null;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((near) => {
    const far = connect(Number(to.port), to.hostname);
    joinSockets(near, far, sockets);
    near.on('data', (chunk) => {
      sent += chunk.length;
      onSent?.();
    });
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cut,
    cutAfter(bytes) {
      const limit = sent + bytes;
      return new Promise((resolve) => {
        onSent = () => {
          if (sent < limit) return;
          onSent = null;
          cut();
          resolve();
        };
      });
    },
    async [Symbol.asyncDispose]() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
