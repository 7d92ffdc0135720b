// A DNS server on loopback that knows a few names, so that surveys of domains can be run without the internet.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

/** Name → type → values: addresses for A, names for CNAME, NS and MX, texts for TXT. */
export type Zone = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

const types: Readonly<Record<number, string>> = {
  1: 'A',
  2: 'NS',
  5: 'CNAME',
  15: 'MX',
  16: 'TXT',
  28: 'AAAA',
};

export async function serveZone(zone: Zone): Promise<AsyncDisposable & { address: string }> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port }) => socket.send(answerOf(zone, query), port, address));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    [Symbol.asyncDispose]: () => closed(socket),
  };
}

async function closed(socket: Socket): Promise<void> {
  socket.close();
  await once(socket, 'close');
}

/** RFC 1035, without compression of names but for the one that was asked for. */
function answerOf(zone: Zone, query: Buffer): Buffer {
  const { name, type, end } = questionOf(query);
  const known = zone[name];
  const values = known?.[types[type] ?? ''] ?? [];
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  // An answer with authority and recursion; NXDOMAIN for a name that is not there.
  header.writeUInt16BE(known === undefined ? 0x85_83 : 0x85_80, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(values.length, 6);
  return Buffer.concat([header, query.subarray(12, end), ...values.map((value) => recordOf(type, value))]);
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  while (query.readUInt8(at) !== 0) {
    const length = query.readUInt8(at);
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function recordOf(type: number, value: string): Buffer {
  const data = dataOf(type, value);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc0_0c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(60, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function dataOf(type: number, value: string): Buffer {
  if (type === 1) return Buffer.from(value.split('.').map(Number));
  if (type === 16) return Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  const name = Buffer.concat([
    ...value.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.from([0]),
  ]);
  return type === 15 ? Buffer.concat([Buffer.from([0, 10]), name]) : name;
}
