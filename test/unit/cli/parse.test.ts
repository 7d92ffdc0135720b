import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { CommandLine } from './command-line.ts';

const fixtures = join(__dirname, '../../fixtures');
let cli: CommandLine;
beforeEach(() => {
  cli = new CommandLine();
});
afterEach(() => {
  cli.remove();
});
const put = (name: string, content: string | Uint8Array): void =>
  writeFileSync(join(cli.folder, name), content);

test('records with their keys, bad ones with reason and sample, warnings, counts', async () => {
  copyFileSync(join(fixtures, 'cases/nmap-truncated.xml'), join(cli.folder, 'cut.xml'));
  const { code, out, err } = await cli.run('parse', 'cut.xml', '--as', 'nmap-xml');
  expect([code, err]).toEqual([0, '']);
  expect(out.split('\n')).toEqual([
    expect.stringMatching(/^TYPE +KEY +KNOWN/),
    expect.stringMatching(/^address +198\.51\.100\.9 +ip=198\.51\.100\.9/),
    expect.stringMatching(/^service +198\.51\.100\.9\/tcp\/443 /),
    'warning: the output was cut: it ends before the scan does',
    '1 row, 2 records, 0 bad, 1 warning',
    '',
  ]);
});

test('--json gives one value with all of it', async () => {
  copyFileSync(join(fixtures, 'cases/hostile-bytes.jsonl'), join(cli.folder, 'web.jsonl'));
  const { code, out } = await cli.run('--json', 'parse', 'web.jsonl', '--as', 'httpx', '--limit', '2');
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    file: 'web.jsonl',
    reader: 'httpx',
    counts: { rows: 7, records: 14, bad: 1, warnings: 0 },
    records: [
      { type: 'endpoint', key: 'http://a.example.test/', fields: { title: 'ok' } },
      { type: 'domain', key: 'a.example.test' },
    ],
    rows: [{ title: 'ok' }, { title: 'nul \uFFFD here' }],
    bad: [{ reason: 'the line is no JSON', sample: 'not json at all' }],
    warnings: [],
  });
});

test('what a target wrote does nothing to a terminal', async () => {
  const title = '\u001b]0;owned\u0007\u001b[2Jx\u202e\u009b31m\r\nfake  0 bad';
  put('x.jsonl', `${JSON.stringify({ url: 'http://a.test/', title })}\n\u001b[2J{"\u202e"\n`);
  for (const words of [[], ['--rows'], ['--json']]) {
    const { code, out } = await cli.run(
      ...words.filter((word) => word === '--json'),
      'parse',
      'x.jsonl',
      '--as',
      'httpx',
      ...words.filter((word) => word !== '--json'),
    );
    expect(code).toBe(0);
    expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  }
});

test('formats show their rows, and records where a type is named', async () => {
  put('ports.csv', 'ip,port,note\n192.0.2.1,80,a\n192.0.2.2,none,b\n');
  const plain = await cli.run('parse', 'ports.csv', '--as', 'csv');
  expect(plain.out).toBe(
    '{"ip":"192.0.2.1","port":"80","note":"a"}\n{"ip":"192.0.2.2","port":"none","note":"b"}\n2 rows, 0 records, 0 bad, 0 warnings\n',
  );
  const fields = ['--record', 'service', '--field', 'address=ip', '--field', 'port=port'];
  const mapped = await cli.run('parse', 'ports.csv', '--as', 'csv', ...fields);
  expect(mapped.code).toBe(0);
  expect(mapped.out).toContain('192.0.2.1/tcp/80');
  expect(mapped.out).toContain(
    'bad: service: `port` is no port: "none": {"address":"192.0.2.2","port":"none"}\n2 rows, 1 record, 1 bad, 0 warnings\n',
  );
});

test.each<[string, string, string, number]>([
  ['nothing at all', '', 'nuclei', 0],
  ['no results', '[]\n', 'nuclei', 0],
  ['something else', '<html>\n', 'nuclei', 1],
  ['no XML', 'Starting Nmap', 'nmap-xml', 1],
  ['one good among bad', 'x\n{"host":"a.test"}\n', 'subfinder', 0],
  ['only refused records', '{"host":"not a host"}\n', 'subfinder', 1],
])('%s: exit code', async (_, content, reader, expected) => {
  put('file', content);
  expect((await cli.run('parse', 'file', '--as', reader)).code).toBe(expected);
});

test('more than --limit is counted and not shown', async () => {
  put('hosts', 'a.test\nb.test\nc.test\nnot a host\nnor this\n');
  const { out } = await cli.run('parse', 'hosts', '--as', 'subfinder', '--limit', '1');
  expect(out).toContain('… and 2 more records (see --limit)');
  expect(out).toContain('… and 1 more bad ones (see --limit)');
  expect(out).toContain('3 rows, 3 records, 2 bad, 0 warnings');
});

test.each<[string[], RegExp]>([
  [['parse', 'gone', '--as', 'httpx'], /gone cannot be read: there is no such file/],
  [['parse', 'folder', '--as', 'httpx'], /folder cannot be read: it is a folder/],
  [['parse', 'x', '--as', 'htpx'], /Allowed choices are lines, jsonl/],
  [['parse', 'x'], /--as <reader>' not specified/],
  [['parse', 'x', '--as', 'httpx', '--record', 'domain'], /makes its own records/],
  [['parse', 'x', '--as', 'jsonl', '--field', 'a=b'], /name the record with --record/],
  [['parse', 'x', '--as', 'jsonl', '--record', 'domain', '--field', 'a'], /Write it as url=final\.url/],
])('%j is a usage fault that says how', async (words, message) => {
  mkdirSync(join(cli.folder, 'folder'));
  put('x', '');
  const { code, err } = await cli.run(...words);
  expect(code).toBe(2);
  expect(err).toMatch(message);
});

test('- is standard input', async () => {
  const words = ['src/main.ts', '--json', 'parse', '-', '--as', 'naabu'];
  const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end('{"ip":"192.0.2.1","port":80}\n');
  const ended = new Promise((resolve) => child.once('close', resolve));
  expect(JSON.parse(await text(child.stdout))).toMatchObject({ file: '-', counts: { rows: 1, records: 2 } });
  expect(await ended).toBe(0);
});
