// Run by memory.test.ts: generates input of a shape, reads it, and prints what came of it.
import { readerFor } from '#sonar/readers/registry.ts';

const shapes: Record<string, { reader: string; head: string; piece: string; tail: string }> = {
  lines: { reader: 'lines', head: '', piece: `host-${'x'.repeat(100)}.example.test\n`, tail: '' },
  jsonl: {
    reader: 'jsonl',
    head: '',
    piece: `{"url":"http://example.test/","title":"${'x'.repeat(200)}"}\n`,
    tail: '',
  },
  'nmap-xml': {
    reader: 'nmap-xml',
    head: '<nmaprun>',
    piece: `<host><address addr="192.0.2.1"/><ports><port protocol="tcp" portid="80"><state state="open"/><script id="http-title" output="${'x'.repeat(800)}"/></port></ports></host>\n`,
    tail: '</nmaprun>',
  },
  'one-line': { reader: 'jsonl', head: '{"a":"', piece: 'x', tail: '"}' },
};

const [shape = '', megabytes = ''] = process.argv.slice(2);
const { reader, head, piece, tail } = shapes[shape] ??
  shapes.lines ?? { reader: '', head: '', piece: '', tail: '' };

async function* bytes(): AsyncGenerator<Uint8Array> {
  yield Buffer.from(head);
  const chunk = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)));
  for (let sent = 0; sent < Number(megabytes) * 1024 * 1024; sent += chunk.length) yield chunk;
  yield Buffer.from(tail);
}

let events = 0;
for await (const _ of readerFor({ reader }).read(bytes(), { reader, record: null, fields: {} })) events += 1;
process.stdout.write(JSON.stringify({ events, residentMb: process.memoryUsage().rss / 1024 / 1024 }));
