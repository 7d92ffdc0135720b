import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import { listen, runProbe, temporaryFolder } from './run-probe.ts';

// Each test starts processes, which may wait for their turn on a loaded machine.
jest.setTimeout(60_000);

const fixture = (name: string): string => readFileSync(join(__dirname, '../../fixtures/tls', name), 'utf8');
const credentials = { key: fixture('loopback.key.pem'), cert: fixture('loopback.cert.pem') };

/** What the probe wrote about a server; null for an empty file. */
async function pageOf(
  server: net.Server,
  timeoutMs = 1_000,
): Promise<{ page: Record<string, unknown> | null; port: number }> {
  await using listening = await listen(server);
  await using folder = await temporaryFolder();
  const out = join(folder.path, 'web.jsonl');
  const args = [
    'web',
    '--url-host',
    '127.0.0.1',
    '--port',
    String(listening.port),
    '--out',
    out,
    '--timeout-ms',
    String(timeoutMs),
  ];
  expect(await runProbe(args)).toEqual({ code: 0, stderr: '' });
  const written = await readFile(out, 'utf8');
  return {
    page: written === '' ? null : (JSON.parse(written) as Record<string, unknown>),
    port: listening.port,
  };
}

const answering =
  (status: number, headers: Record<string, string>, body: string | Buffer) =>
  (_: unknown, response: http.ServerResponse) => {
    response.writeHead(status, headers).end(body);
  };

test('an HTTP server is told with status, title and server', async () => {
  const body = '<html><head><title lang="en">\n Caf&eacute; &amp; &#60;b&#62; </title>';
  const { page, port } = await pageOf(
    http.createServer(answering(404, { Server: 'test/1', 'Content-Type': 'text/html' }, body)),
  );
  expect(page).toEqual({
    url: `http://127.0.0.1:${port}/`,
    status: 404,
    title: 'Caf&eacute; & <b>',
    server: 'test/1',
    contentType: 'text/html',
    bytes: body.length,
  });
});

test('an HTTPS server is told with its certificate, whoever signed it', async () => {
  const { page, port } = await pageOf(
    https.createServer(credentials, answering(200, {}, '<title>safe</title>')),
  );
  expect(page).toMatchObject({
    url: `https://127.0.0.1:${port}/`,
    status: 200,
    title: 'safe',
    tls: {
      subject: 'O=Sonar tests, CN=loopback.test',
      issuer: 'O=Sonar tests, CN=loopback.test',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    },
  });
});

test('a redirect is told, not followed', async () => {
  let requests = 0;
  const { page } = await pageOf(
    http.createServer((_, response) => {
      requests += 1;
      response.writeHead(302, { Location: '/elsewhere' }).end();
    }),
  );
  expect(page).toMatchObject({ status: 302, location: '/elsewhere' });
  expect(requests).toBe(1);
});

test('a body without end is cut at 1 MiB', async () => {
  const server = http.createServer((_, response) => {
    const chunk = Buffer.alloc(65_536, 'x');
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', more);
    response.write('<title>endless</title>');
    more();
  });
  expect((await pageOf(server)).page).toMatchObject({ title: 'endless', bytes: 1024 * 1024 });
});

test('a body that stalls gives what has come by the deadline', async () => {
  const server = http.createServer((_, response) => {
    response.write('<title>slow</title>');
  });
  expect((await pageOf(server, 300)).page).toMatchObject({ status: 200, title: 'slow' });
});

test('a compressed body has no title', async () => {
  const server = http.createServer(
    answering(200, { 'Content-Encoding': 'gzip' }, Buffer.from('<title>not text</title>')),
  );
  expect((await pageOf(server)).page).not.toHaveProperty('title');
});

test.each<[string, () => net.Server]>([
  ['says nothing', () => net.createServer((socket) => socket.on('error', () => socket.destroy()))],
  ['hangs up', () => net.createServer((socket) => socket.destroy())],
  [
    'speaks something else',
    () => net.createServer((socket) => socket.on('error', () => socket.destroy()).end('220 mail ready\r\n')),
  ],
  [
    'speaks something else over TLS',
    () =>
      tls.createServer(credentials, (socket) =>
        socket.on('error', () => socket.destroy()).end('* OK imap\r\n'),
      ),
  ],
])('a port that %s leaves an empty file', async (_, server) => {
  expect((await pageOf(server(), 300)).page).toBeNull();
});

test('a closed port leaves an empty file too', async () => {
  const closing = await listen(net.createServer());
  await closing[Symbol.asyncDispose]();
  await using folder = await temporaryFolder();
  const out = join(folder.path, 'web.jsonl');
  expect(
    await runProbe(['web', '--url-host', '127.0.0.1', '--port', String(closing.port), '--out', out]),
  ).toMatchObject({ code: 0 });
  expect(await readFile(out, 'utf8')).toBe('');
});

const wrongArguments: [string[], RegExp][] = [
  [['--url-host', '-x', '--port', '80', '--out', 'x'], /neither a host name nor an address/],
  [['--url-host', 'a@b', '--port', '80', '--out', 'x'], /neither a host name nor an address/],
  [['--url-host', '127.0.0.1', '--port', '80x', '--out', 'x'], /--port must be a whole number/],
  [['--url-host', '127.0.0.1', '--port', '80'], /--out is missing/],
];

test('wrong arguments are refused before anything is touched', async () => {
  const results = await Promise.all(wrongArguments.map(([args]) => runProbe(['web', ...args])));
  for (const [index, [, message]] of wrongArguments.entries()) {
    expect(results[index]?.code).toBe(2);
    expect(results[index]?.stderr).toMatch(message);
  }
});
