// A few small real servers on loopback addresses: what the demo's survey is held to find.
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { generate } from 'selfsigned';

export interface TargetServers {
  /** All addresses that are to be surveyed, also one where nothing listens. */
  addresses: string[];
  services: { address: string; port: number }[];
  /** URLs that answer over HTTP or HTTPS, with the titles of their pages. */
  endpoints: { url: string; title: string }[];
  close(): Promise<void>;
}

const page =
  (title: string): RequestListener =>
  (_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.setHeader('server', 'sonar-demo');
    response.end(`<!doctype html><title>${title}</title><h1>${title}</h1>\n`);
  };

/** A service that speaks no HTTP. A scanner hangs up in the middle of it: no fault of ours. */
function greet(socket: Socket): void {
  socket.on('error', () => socket.destroy());
  socket.resume();
  socket.end('220 demo mail\r\n');
}

/** Starts them on free ports. 127.0.0.9 answers nowhere: a host without an open port is a result too. */
export async function startTargetServers(): Promise<TargetServers> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'demo.sonar.test' }]);
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const services: TargetServers['services'] = [];
  const endpoints: TargetServers['endpoints'] = [];

  const listen = async (server: Server, address: string): Promise<number> => {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, address, resolve);
    });
    servers.push(server);
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    const { port } = server.address() as AddressInfo;
    services.push({ address, port });
    return port;
  };
  const http = async (address: string, title: string): Promise<void> => {
    const port = await listen(createHttpServer(page(title)), address);
    endpoints.push({ url: `http://${address}:${port}/`, title });
  };
  const https = async (address: string, title: string): Promise<void> => {
    const port = await listen(createHttpsServer({ key, cert }, page(title)), address);
    endpoints.push({ url: `https://${address}:${port}/`, title });
  };

  await http('127.0.0.1', 'Shop');
  await https('127.0.0.1', 'Sign in');
  await http('127.0.0.2', 'Status');
  await https('127.0.0.2', 'Webmail');
  await listen(createTcpServer(greet), '127.0.0.2');
  await http('127.0.0.3', 'Intranet');
  return {
    addresses: ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.9'],
    services,
    endpoints,
    async close() {
      const closed = servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}
