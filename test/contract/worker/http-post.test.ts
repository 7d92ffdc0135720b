// The worker's own way to post: kept connections, and what a server may do to them.
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '#sonar/platform/errors.ts';
import { createPoster, type PostBounds } from '#sonar/worker/http-post.ts';

const bounds: PostBounds = {
  signal: new AbortController().signal,
  timeoutMs: 20_000,
  maxAnswerBytes: 1_000,
};

async function served(listener: RequestListener) {
  const server = createServer(listener);
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const poster = createPoster();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    connections: () => connections,
    post: (body: string, changes: Partial<PostBounds> = {}) =>
      poster.post(url, { 'x-test': '1' }, body, { ...bounds, ...changes }),
    async [Symbol.asyncDispose]() {
      poster.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('calls one after the other share a connection, and the body arrives whole', async () => {
  await using server = await served((request, response) => {
    request.setEncoding('utf8').on('data', (text: string) => response.write(text));
    request.on('end', () => response.end());
  });
  expect(await server.post('{"a":"é"}')).toEqual({ status: 200, text: '{"a":"é"}' });
  expect(await server.post('second')).toEqual({ status: 200, text: 'second' });
  expect(server.connections()).toBe(1);
});

test('a kept connection that the server has given up costs nothing, a fresh one that breaks is a fault', async () => {
  let calls = 0;
  await using server = await served((request, response) => {
    calls += 1;
    if (calls === 2 || calls >= 4) request.socket.resetAndDestroy();
    else response.end('here');
  });
  expect(await server.post('')).toMatchObject({ text: 'here' });
  expect(await server.post('')).toMatchObject({ text: 'here' });
  expect(calls).toBe(3);
  // The kept one breaks, and so does the fresh one after it.
  await expect(server.post('')).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(calls).toBe(5);
});

test('an answer has a size and a time, and a redirect is not followed', async () => {
  await using server = await served((request, response) => {
    if (request.headers['content-length'] === '1') response.end('x'.repeat(1_001));
    else if (request.headers['content-length'] === '2')
      response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end();
  });
  await expect(server.post('a')).rejects.toThrow('larger than 1000 bytes');
  expect(await server.post('ab')).toEqual({ status: 307, text: '' });
  await expect(server.post('abc', { timeoutMs: 20 })).rejects.toThrow('no answer within 20 ms');
  const abort = new AbortController();
  const waiting = server.post('abc', { signal: abort.signal });
  abort.abort();
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
});

test('an answer that switches protocols is a fault, and no later than the time or the signal', async () => {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('data', () =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const poster = createPoster();
  const clock = new AbortController();
  const never = delay(5_000, 'never', { signal: clock.signal }).catch(() => 'never');
  const call = poster.post(url, {}, '{}', { ...bounds, timeoutMs: 500 });
  const end = await Promise.race([call.catch(messageOf), never]);
  clock.abort();
  poster.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  expect(end).toMatch(/^(the connection ended without an answer|no answer within 500 ms|socket hang up)$/);
});

test('a signal that has aborted already ends the call before it is sent', async () => {
  let calls = 0;
  await using server = await served((_, response) => {
    calls += 1;
    response.end();
  });
  await expect(server.post('', { signal: AbortSignal.abort() })).rejects.toMatchObject({
    name: 'AbortError',
  });
  expect(await server.post('')).toMatchObject({ status: 200 });
  expect(calls).toBe(1);
});
