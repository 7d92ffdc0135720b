import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { reservePorts } from '#sonar/stack/port-memory.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();

function dataFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

async function occupy(port: number): Promise<AsyncDisposable> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return { [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
}

test('ports are different, and the same again at the next start', async () => {
  const data = dataFolder('remembered');
  const first = await reservePorts(data, {});
  expect(new Set(Object.values(first.ports)).size).toBe(Object.keys(first.ports).length);
  first.release();
  const second = await reservePorts(data, {});
  second.release();
  expect(second.ports).toEqual(first.ports);
  expect(second.moved).toEqual([]);
});

test('a remembered port that somebody else has taken moves alone, and is reported', async () => {
  const data = dataFolder('moved');
  const first = await reservePorts(data, {});
  first.release();
  await using _ = await occupy(first.ports.amqp);
  const second = await reservePorts(data, {});
  second.release();
  expect(second.ports).toEqual({ ...first.ports, amqp: second.ports.amqp });
  expect(second.ports.amqp).not.toBe(first.ports.amqp);
  expect(second.moved).toEqual([expect.stringContaining(`${first.ports.amqp} (amqp)`)]);
});

test('stacks that choose at the same moment share no port', async () => {
  const reservations = await Promise.all(
    ['one', 'two', 'three', 'four'].map((name) => reservePorts(dataFolder(name), {})),
  );
  const all = reservations.flatMap(({ ports }) => Object.values(ports));
  for (const reservation of reservations) reservation.release();
  expect(new Set(all).size).toBe(all.length);
});

test('a stack whose block another one has got gives up all its ports, bound or not', async () => {
  const data = dataFolder('lost-block');
  const first = await reservePorts(data, {});
  first.release();
  await using _ = await occupy(first.ports.claim);
  const second = await reservePorts(data, {});
  second.release();
  const before = new Set(Object.values(first.ports));
  expect(Object.values(second.ports).filter((port) => before.has(port))).toEqual([]);
});

test('a configured port that is in use is a fault that names it', async () => {
  await using _ = await occupy(32_500);
  await expect(reservePorts(dataFolder('fixed'), { temporalFrontend: 32_500 })).rejects.toMatchObject({
    code: 'port_in_use',
    message: expect.stringMatching(/32500.*temporalFrontend/),
  });
});
