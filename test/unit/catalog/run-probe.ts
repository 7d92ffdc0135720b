// Runs the bundled probe as a worker would: by its path, without a shell.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo, Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const probe = join(__dirname, '../../../catalog/bin/sonar-probe');

export interface ProbeResult {
  code: number | null;
  stderr: string;
}

/** @param path the PATH of the probe: where it looks for nmap */
export async function runProbe(args: string[], path = process.env.PATH ?? ''): Promise<ProbeResult> {
  const child = spawn(process.execPath, [probe, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: path },
  });
  const [stderr, [code]] = await Promise.all([
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stderr };
}

/** Listens on a free port of an address; ends with all its connections. */
export async function listen(
  server: Server,
  address = '127.0.0.1',
): Promise<AsyncDisposable & { port: number }> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    // A scanner resets the connections that it opened.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

export async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'sonar-probe-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
