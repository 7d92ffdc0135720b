import { spawn, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import { caseFile, eventsOf, only } from './events-of.ts';
import { keysOf, sample } from './tool-samples.ts';

const read = (content: string | Uint8Array, chunkSize?: number): Promise<ReadEvent[]> =>
  eventsOf(content, { reader: 'nmap-xml' }, chunkSize);

const warningsOf = (events: readonly ReadEvent[]): string[] =>
  only(events, 'warning').map(({ message }) => message);

const port = (id: number | string, state = 'open', service = ''): string =>
  `<port protocol="tcp" portid="${id}"><state state="${state}"/>${service}</port>`;
const host = (address: string, ports: string, more = ''): string =>
  `<host><status state="up"/><address addr="${address}" addrtype="ipv4"/>${more}<ports>${ports}</ports></host>`;
const run = (...hosts: string[]): string => `<?xml version="1.0"?><nmaprun>${hosts.join('')}</nmaprun>`;

test('a control character in a service name costs a warning and no host', async () => {
  for (const chunkSize of [1, 7, 65_536]) {
    const events = await read(caseFile('nmap-control-char.xml'), chunkSize);
    expect(keysOf(events)).toEqual([
      'address 198.51.100.7',
      'service 198.51.100.7/tcp/9100',
      'address 198.51.100.8',
      'service 198.51.100.8/tcp/22',
    ]);
    expect(only(events, 'row').map(({ row }) => row)).toMatchObject([
      { ip: '198.51.100.7', host: 'a.example.test', port: 9100, service: 'jet\uFFFDdirect' },
      { ip: '198.51.100.8', host: '198.51.100.8', service: 'ssh', product: 'OpenSSH', version: '9.2p1' },
    ]);
    expect(warningsOf(events)).toEqual([
      'the output is not well-formed XML, and was read all the same: 4:102: malformed character entity.',
    ]);
  }
});

test('of a truncated file the complete host lands, and the cut is told', async () => {
  for (const chunkSize of [1, 65_536]) {
    const events = await read(caseFile('nmap-truncated.xml'), chunkSize);
    expect(keysOf(events)).toEqual(['address 198.51.100.9', 'service 198.51.100.9/tcp/443']);
    expect(only(events, 'row')[0]?.row).toMatchObject({ tunnel: 'ssl', url: 'https://198.51.100.9/' });
    expect(warningsOf(events)).toEqual(['the output was cut: it ends before the scan does']);
  }
});

test('a file cut anywhere gives a prefix of its events and one warning, and never throws', async () => {
  const whole = run(
    host('192.0.2.1', port(80) + port(443)),
    host('192.0.2.2', port(22, 'closed')),
    host('192.0.2.3', port(25)),
  );
  const expected = keysOf(await read(whole));
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: whole.length - 1 }), async (length) => {
      const events = await read(whole.slice(0, length));
      const keys = keysOf(events);
      expect(keys).toEqual(expected.slice(0, keys.length));
      expect(only(events, 'bad').length + warningsOf(events).length).toBe(1);
    }),
    { seed: 20_008, numRuns: 300 },
  );
});

test('whatever the bytes are, the reader says so and does not throw', async () => {
  const piece = fc.constantFrom(
    '<nmaprun>',
    '<host>',
    '</host>',
    '<port portid="80">',
    '<state state="open"/>',
    '<address addr="192.0.2.1"/>',
    '</port>',
    '</nmaprun>',
    '<',
    '>',
    '&x;',
    '&#0;',
    '\0',
    '\u0001',
    '<!--',
    '-->',
    '<![CDATA[',
    ']]>',
    '<!DOCTYPE',
    '<?',
    '?>',
    '"',
    "'",
    '=',
    ' ',
    '\ud800',
    'x',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 25 }),
      fc.integer({ min: 1, max: 50 }),
      async (pieces, chunkSize) => {
        for (const event of await read(pieces.join(''), chunkSize))
          expect(JSON.stringify(event).isWellFormed()).toBe(true);
      },
    ),
    { seed: 20_009, numRuns: 500 },
  );
});

test('one row an open port; every up host is an address, with its names', async () => {
  const names =
    '<hostnames><hostname name="a.test" type="user"/><hostname name="b.test" type="PTR"/><hostname name="a.test"/></hostnames>';
  const mac = '<address addr="00:11:22:33:44:55" addrtype="mac" vendor="Maker"/>';
  const events = await read(
    run(
      host('192.0.2.1', port(80) + port(81, 'closed') + port(82, 'open|filtered') + port(83), mac + names),
      host('192.0.2.2', ''),
      '<host><status state="down"/><address addr="192.0.2.3" addrtype="ipv4"/></host>',
    ),
  );
  expect(only(events, 'records')).toEqual([
    {
      kind: 'records',
      ordinal: 0,
      records: [
        {
          type: 'address',
          fields: { ip: '192.0.2.1', mac: '00:11:22:33:44:55', vendor: 'Maker', os: null, scripts: null },
          sets: { hostnames: ['a.test', 'b.test'] },
        },
      ],
    },
    {
      kind: 'records',
      ordinal: 1,
      records: [
        {
          type: 'address',
          fields: { ip: '192.0.2.2', mac: null, vendor: null, os: null, scripts: null },
          sets: { hostnames: [] },
        },
      ],
    },
  ]);
  expect(only(events, 'row').map(({ ordinal, row }) => [ordinal, row.host, row.port])).toEqual([
    [0, 'a.test', 80],
    [1, 'a.test', 83],
  ]);
  expect(warningsOf(events)).toEqual([]);
});

test.each<[string, string | undefined]>([
  ['<service name="http"/>', 'http://192.0.2.1:8443/'],
  ['<service name="http" tunnel="ssl"/>', 'https://192.0.2.1:8443/'],
  ['<service name="https"/>', 'https://192.0.2.1:8443/'],
  ['<service name="https-alt"/>', 'https://192.0.2.1:8443/'],
  ['<service name="http-proxy"/>', 'http://192.0.2.1:8443/'],
  ['<service name="httpd-manager"/>', undefined],
  ['<service name="ssh"/>', undefined],
  ['<service name="unknown"/>', undefined],
  ['', undefined],
])('%s has the URL %s', async (service, url) => {
  const [row] = only(await read(run(host('192.0.2.1', port(8443, 'open', service)))), 'row');
  expect(row?.row.url).toBe(url);
});

test('IPv6 hosts have bracketed URLs', async () => {
  const ports = port(80, 'open', '<service name="http"/>');
  const content = run(`<host><address addr="2001:db8::1" addrtype="ipv6"/><ports>${ports}</ports></host>`);
  expect(only(await read(content), 'row')[0]?.row.url).toBe('http://[2001:db8::1]/');
});

test('one bad host or port is counted and loses no neighbour', async () => {
  const events = await read(
    run(
      '<host><hostnames><hostname name="x.test"/></hostnames></host>',
      host('192.0.2.1', port('many') + port(80)),
    ),
  );
  expect(only(events, 'bad')).toEqual([
    { kind: 'bad', ordinal: 0, reason: 'a host without an address', sample: 'x.test' },
    { kind: 'bad', ordinal: 1, reason: '192.0.2.1: a port without a number', sample: 'tcp' },
  ]);
  expect(only(events, 'row').map(({ row }) => row.port)).toEqual([80]);
});

test('what is no nmap XML is bad, and an empty file is a cut one', async () => {
  expect(only(await read('<html><host><address addr="192.0.2.1"/></host></html>'), 'bad')).toMatchObject([
    { reason: 'the output is no nmap XML' },
  ]);
  expect(keysOf(await read('<html><host><address addr="192.0.2.1"/></host></html>'))).toEqual([]);
  expect(only(await read('Starting Nmap 7.93'), 'bad')).toHaveLength(1);
  expect(await read(caseFile('empty.txt'))).toEqual([
    { kind: 'warning', message: 'the output was cut: it ends before the scan does' },
  ]);
});

test('an error that nmap reports is a warning', async () => {
  const finished = '<runstats><finished exit="error" errormsg="no route"/></runstats>';
  expect(warningsOf(await read(run(finished)))).toEqual(['nmap ended with an error: no route']);
});

test('entities are never followed: neither files nor bombs', async () => {
  const levels = Array.from(
    { length: 20 },
    (_, level) => `<!ENTITY e${level + 1} "${`&e${level};`.repeat(10)}">`,
  ).join('');
  const doctype = `<!DOCTYPE nmaprun [<!ENTITY e0 "x"><!ENTITY file SYSTEM "file:///etc/passwd">${levels}]>`;
  const service = '<service name="&file;" product="&e20;"/>';
  const events = await read(
    `<?xml version="1.0"?>${doctype}<nmaprun>${host('192.0.2.1', port(80, 'open', service))}</nmaprun>`,
  );
  expect(only(events, 'row').map(({ row }) => [row.service, row.product])).toEqual([['&file;', '&e20;']]);
  expect(warningsOf(events)).toHaveLength(1);
});

test.each(['<nmaprun x="', '<nmaprun><!--', '<!DOCTYPE nmaprun [', '<nmaprun>'])(
  'reading ends where a value never does: %s',
  async (start) => {
    const filler = 'x'.repeat(1024 * 1024);
    const events = await read(start + filler.repeat(20));
    expect(warningsOf(events).join()).toMatch(/reading ended early: \d+ characters without a tag/);
  },
);

test.each(['\0', '<'])(
  'of a document of nothing but faults (%j) little is read, and what was before it stays',
  async (fault) => {
    const hosts = Array.from({ length: 50 }, (_, index) => host(`192.0.2.${index}`, port(80))).join('');
    const events = await read(run(hosts, fault.repeat(128 * 1024), host('198.51.100.1', port(80))));
    expect(only(events, 'row')).toHaveLength(50);
    expect(only(events, 'bad')).toHaveLength(1);
    const [, faults] =
      /^the XML has more than (\d+) faults: the rest is not read$/.exec(
        only(events, 'bad')[0]?.reason ?? '',
      ) ?? [];
    expect(Number(faults)).toBeGreaterThan(9_999);
    expect(Number(faults)).toBeLessThan(20_000);
    expect(warningsOf(events).join()).toMatch(/reading ended early: the XML has more than/);
  },
);

test('a long document with a fault in every host is read to its end', async () => {
  const hosts = Array.from({ length: 11_000 }, (_, index) =>
    host(
      '192.0.2.1',
      port((index % 65_535) + 1, 'open', `<service name="&#1;" product="${'x'.repeat(200)}"/>`),
    ),
  );
  const events = await read(run(...hosts));
  expect(only(events, 'row')).toHaveLength(11_000);
  expect(only(events, 'bad')).toEqual([]);
});

test('what is gathered of one host has a bound, however deep it lies', async () => {
  const deep = `${'<table key="k">'.repeat(5_000)}${'<elem key="pem">x</elem>'.repeat(300)}${'</table>'.repeat(5_000)}`;
  const cpe = `<service name="http"><cpe>${'x'.repeat(200)}${'<b/>y'.repeat(50_000)}</cpe></service>`;
  const script = `<script id="ssl-cert" output="o">${deep}</script>`;
  const events = await read(run(host('192.0.2.1', port(443, 'open', cpe + script))));
  const [row] = only(events, 'row');
  expect(JSON.stringify(row?.row.cpes).length).toBeLessThan(4_200);
  expect(row?.row.scripts).toEqual({ 'ssl-cert': 'o' });
});

describe('of a run of nmap 7.93', () => {
  test('scripts, titles, CPE names and the certificate are kept; closed ports are not', async () => {
    const events = await read(sample('nmap-7.93.xml'), 100);
    expect(only(events, 'row').map(({ row }) => row)).toMatchObject([
      {
        host: 'localhost',
        hostnames: ['localhost'],
        port: 18080,
        product: 'nginx',
        title: 'Hello &amp; welcome',
        cpes: ['cpe:/a:igor_sysoev:nginx:1.18.0'],
        scripts: { 'http-server-header': 'nginx/1.18.0' },
        url: 'http://localhost:18080/',
      },
      { port: 18443, tunnel: 'ssl', url: 'https://localhost:18443/' },
    ]);
    const certificate = only(events, 'row').flatMap(({ records }) => records.slice(1));
    expect(certificate).toEqual([
      {
        type: 'certificate',
        fields: {
          sha256: '396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953',
          subject_cn: 'loopback.test',
          issuer_cn: 'loopback.test',
          not_before: '2026-11-30T07:17:01Z',
          not_after: '2126-11-06T07:17:01Z',
        },
        sets: { hosts: ['localhost'], names: ['loopback.test', '127.0.0.1'] },
      },
    ]);
    expect(only(events, 'records')[0]?.records[0]?.fields).toMatchObject({ os: 'Linux 5.0 - 5.2' });
    expect(warningsOf(events)).toEqual([]);
  });

  test('the certificate’s fingerprint is that of the certificate', async () => {
    const pem = readFileSync(join(__dirname, '../../fixtures/tls/loopback.cert.pem'));
    const { fingerprint256 } = new X509Certificate(pem);
    expect(keysOf(await read(sample('nmap-7.93.xml')))).toContain(
      `certificate ${fingerprint256.replaceAll(':', '').toLowerCase()}`,
    );
  });
});

test('a script that says nothing, twice, or too much costs nothing', async () => {
  const scripts = [
    '<script id="a" output=""/>',
    '<script output="no name"/>',
    `<script id="long" output="${'x'.repeat(10_000)}"><table><elem/><elem key="k">v</elem></table></script>`,
    '<script id="ssl-cert" output="x"><elem key="pem">-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----</elem></script>',
    ...Array.from({ length: 100 }, (_, index) => `<script id="s${index}" output="y"/>`),
  ].join('');
  const events = await read(run(host('192.0.2.1', port(443, 'open', scripts) + port(80))));
  const [row] = only(events, 'row');
  expect(Object.keys(row?.row.scripts ?? {})).toHaveLength(32);
  expect(keysOf(events)).toEqual([
    'address 192.0.2.1',
    'service 192.0.2.1/tcp/443',
    expect.stringMatching(/^certificate [0-9a-f]{64}$/),
    'service 192.0.2.1/tcp/80',
  ]);
});

const nmap = spawnSync('nmap', ['--version'], { encoding: 'utf8' });
// CI installs nmap and must have it; elsewhere it is run where there is one.
const withNmap = nmap.error === undefined || process.env.CI ? describe : describe.skip;

withNmap('nmap itself', () => {
  test('is run on loopback, and its output is read', async () => {
    const server = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port: open } = server.address() as AddressInfo;
    const child = spawn('nmap', ['-n', '-Pn', '-sT', '-p', `${open},1`, '-oX', '-', '127.0.0.1']);
    const events = await read(Buffer.concat(await child.stdout.toArray()));
    server.close();
    expect(keysOf(events)).toEqual(['address 127.0.0.1', `service 127.0.0.1/tcp/${open}`]);
    expect(events.filter(({ kind }) => kind === 'bad' || kind === 'warning')).toEqual([]);
  });
});
