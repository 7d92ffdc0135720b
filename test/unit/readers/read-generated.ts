// Run by memory.test.ts: generates input of a shape, reads it, and prints what came of it. By hand, with a file or
// gigabytes: `node test/unit/readers/read-generated.ts json 1024`.

import type { ReaderName } from '#sonar/definition/reader-catalog.ts';
import { readerFor } from '#sonar/readers/registry.ts';
import { peakMemoryMb } from '../../fixtures/peak-memory.ts';

interface Shape {
  reader: ReaderName;
  head: string;
  /** One record of many; `#` stands for its number, so that no two are alike. */
  piece: string;
  tail: string;
}

const web =
  '{"timestamp":"2026-01-02T03:04:05Z","url":"https://h#.example.test/","input":"h#.example.test","title":"a title that is long enough","webserver":"nginx/1.18.0","status_code":200,"content_length":1256,"host":"192.0.2.80","a":["192.0.2.80"],"tech":["Nginx:1.18.0"],"failed":false}';

export const shapes = {
  lines: { reader: 'lines', head: '', piece: `host-#-${'x'.repeat(40)}.example.test\n`, tail: '' },
  jsonl: { reader: 'jsonl', head: '', piece: `${web}\n`, tail: '' },
  json: { reader: 'json', head: '[\n', piece: `${web},\n`, tail: ']\n' },
  'json-on-one-line': { reader: 'json', head: '[', piece: `${web},`, tail: ']' },
  httpx: { reader: 'httpx', head: '', piece: `${web}\n`, tail: '' },
  ffuf: {
    reader: 'ffuf',
    head: '{"commandline":"ffuf","results":[',
    piece:
      '{"input":{"FUZZ":"w#"},"status":200,"length":3,"words":1,"lines":1,"url":"http://a.test/w#","host":"a.test"},',
    tail: '],"config":{}}',
  },
  csv: {
    reader: 'csv',
    head: 'url,title,note\n',
    piece: `http://h#.test/,"a, ""b""",${'x'.repeat(50)}\n`,
    tail: '',
  },
  'nmap-xml': {
    reader: 'nmap-xml',
    head: '<nmaprun>',
    piece: `<host><address addr="192.0.2.1"/><hostnames><hostname name="h#.test"/></hostnames><ports><port protocol="tcp" portid="80"><state state="open"/><service name="http" product="nginx"><cpe>cpe:/a:x:#</cpe></service><script id="http-title" output="${'x'.repeat(600)}"><elem key="title">Title #</elem></script></port></ports></host>\n`,
    tail: '</nmaprun>',
  },
  masscan: {
    reader: 'masscan',
    head: '[\n',
    piece:
      '{ "ip": "192.0.2.2", "timestamp": "#", "ports": [ {"port": 22, "proto": "tcp", "status": "open", "reason": "syn-ack", "ttl": 64} ] },\n',
    tail: ']\n',
  },
  'one-line': { reader: 'jsonl', head: '{"a":"', piece: 'x', tail: '"}' },
  'one-element': { reader: 'json', head: '[{"a":"', piece: 'x', tail: '"},{"a":1}]' },
  'one-quote': { reader: 'csv', head: 'a,b\n"', piece: `${'x'.repeat(60)},y\n`, tail: '' },
} as const satisfies Record<string, Shape>;
export type ShapeName = keyof typeof shapes;

async function* bytesOf({ head, piece, tail }: Shape, megabytes: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from(head);
  const parts = piece.split('#');
  let number = 0;
  for (let sent = 0; sent < megabytes * 1024 * 1024; ) {
    let chunk = '';
    while (chunk.length < 65_536) chunk += parts.length === 1 ? piece : parts.join(String((number += 1)));
    yield Buffer.from(chunk);
    sent += chunk.length;
  }
  yield Buffer.from(tail);
}

const [name = '', megabytes = ''] = process.argv.slice(2);
if (Object.hasOwn(shapes, name)) {
  const shape = shapes[name as ShapeName];
  const counts = { row: 0, records: 0, bad: 0, warning: 0 };
  const start = performance.now();
  const spec = { reader: shape.reader, record: null, fields: {} };
  for await (const { kind } of readerFor(spec).read(bytesOf(shape, Number(megabytes)), spec))
    counts[kind] += 1;
  const seconds = (performance.now() - start) / 1000;
  const residentMb = peakMemoryMb();
  process.stdout.write(JSON.stringify({ ...counts, seconds, residentMb }));
}
