// What the surveys of the catalog survey: names, and servers on loopback addresses that nothing else uses.
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { serveZone } from './loopback-dns.ts';

const root = join(import.meta.dirname, '..', '..');
const tls = (name: string): Buffer => readFileSync(join(root, 'test/fixtures/tls', name));

export const front = '127.0.51.1';
export const secure = '127.0.51.2';
export const shell = '127.0.51.3';

export interface Surveyed extends AsyncDisposable {
  ports: { web: number; tls: number; ssh: number };
  resolver: string;
}

const pages: Readonly<Record<string, string>> = {
  '/': '<title>Front</title><a href="/about">about</a> <a href="http://elsewhere.test/">away</a>',
  '/about': '<title>About</title><script src="/app.js"></script>',
  '/app.js': 'let x = 1;',
  '/admin': '<title>Admin</title>secret panel',
};

function answer(request: IncomingMessage, response: ServerResponse): void {
  const page = pages[request.url ?? ''];
  response.writeHead(page === undefined ? 404 : 200, {
    // As nginx writes it: nmap looks for the capital letter.
    Server: 'nginx/1.18.0',
    'Content-Type': 'text/html',
  });
  response.end(page ?? 'nothing');
}

export async function serveHosts(): Promise<Surveyed> {
  const sockets = new Set<Socket>();
  const listen = async (server: Server, address: string): Promise<number> => {
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      // Scanners reset the connections that they opened.
      socket.on('error', () => socket.destroy());
      socket.on('close', () => sockets.delete(socket));
    });
    server.listen(0, address);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const servers = [
    createHttpServer(answer),
    createHttpsServer({ key: tls('loopback.key.pem'), cert: tls('loopback.cert.pem') }, answer),
    createTcpServer((socket) => socket.write('SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n')),
  ] as const;
  const ports = {
    web: await listen(servers[0], front),
    tls: await listen(servers[1], secure),
    ssh: await listen(servers[2], shell),
  };
  const dns = await serveZone({
    'sonar.test': { A: [front], MX: ['mail.sonar.test'], NS: ['ns.sonar.test'], TXT: ['v=spf1 -all'] },
    'www.sonar.test': { A: [front] },
    'api.sonar.test': { A: [secure] },
    'shell.sonar.test': { A: [shell] },
  });
  return {
    ports,
    resolver: dns.address,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      for (const server of servers) await once(server.close(), 'close');
      await dns[Symbol.asyncDispose]();
    },
  };
}

/**
 * A folder for the PATH of workers: the tools that stand in for those that cannot be had, and what they know of their
 * machine and of public sources.
 */
export function toolsFolder(folder: string, { ports, resolver }: Surveyed): string {
  mkdirSync(folder);
  const tools = join(root, 'test/fixtures/tools');
  for (const entry of readdirSync(tools, { withFileTypes: true }))
    if (entry.isFile()) symlinkSync(join(tools, entry.name), join(folder, entry.name));
  symlinkSync(join(root, 'catalog/bin/sonar-probe'), join(folder, 'sonar-probe'));
  writeFileSync(join(folder, 'resolver'), resolver);
  writeFileSync(join(folder, 'ports.json'), JSON.stringify({ 80: ports.web, 443: ports.tls }));
  const found = ['www', 'api', 'shell', 'gone', 'vpn'].map((name) => `${name}.sonar.test`);
  writeFileSync(
    join(folder, 'sources.json'),
    // vpn is denied, and the last one belongs to somebody else.
    JSON.stringify({ 'sonar.test': [...found, 'www.elsewhere.test'] }),
  );
  return folder;
}

/** Two templates of nuclei, one of which finds something; the third must not run by its tag. */
export function writeTemplates(folder: string): void {
  mkdirSync(join(folder, 'http'), { recursive: true });
  const template = (id: string, path: string, tags: string, word: string): string =>
    [
      `id: ${id}`,
      `info: {name: ${id}, author: sonar, severity: medium, tags: "${tags}"}`,
      'http:',
      `  - {method: GET, path: ["{{BaseURL}}${path}"], matchers: [{type: word, words: ["${word}"]}]}`,
    ].join('\n');
  const write = (name: string, text: string): void => writeFileSync(join(folder, 'http', name), `${text}\n`);
  write('admin-panel.yaml', template('admin-panel', '/admin', 'panel', 'secret panel'));
  write('git-config.yaml', template('git-config', '/.git/config', 'exposure', '[core]'));
  write('slowloris.yaml', template('slowloris', '/', 'dos', 'Front'));
}
