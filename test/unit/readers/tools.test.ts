// What each reader makes of each dialect of its tool: every sample in test/fixtures/readers has its line here.
import fc from 'fast-check';
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { readerCatalog, readerNames } from '#sonar/definition/reader-catalog.ts';
import { caseFile, eventsOf, only } from './events-of.ts';
import { keysOf, readerOfSample, sample, sampleFiles } from './tool-samples.ts';

const seed = 20_014;

const expected: Record<string, string[]> = {
  'dnsx-1.0.jsonl': [
    'domain www.example.com',
    'address 192.0.2.80',
    'dns www.example.com A 192.0.2.80',
    'dns www.example.com SOA ns1.example.net',
  ],
  'dnsx.jsonl': [
    'domain www.example.com',
    'address 192.0.2.80',
    'address 192.0.2.81',
    'address 2001:db8::80',
    'dns www.example.com A 192.0.2.80',
    'dns www.example.com A 192.0.2.81',
    'dns www.example.com AAAA 2001:db8::80',
    'dns www.example.com CNAME edge.example.net',
    'domain example.com',
    'dns example.com MX mail.example.com',
    'dns example.com NS ns1.example.net',
    'dns example.com TXT v=spf1 -all',
    'dns example.com CAA letsencrypt.org',
    'dns example.com SOA ns1.example.net',
    'dns 80.2.0.192.in-addr.arpa PTR www.example.com',
  ],
  'dnsx.txt': [
    'domain www.example.com',
    'address 192.0.2.80',
    'address 2001:db8::80',
    'dns www.example.com A 192.0.2.80',
    'dns www.example.com AAAA 2001:db8::80',
    'domain edge.example.com',
    'domain plain.example.com',
  ],
  'ffuf-vhosts.json': ['endpoint http://192.0.2.80/', 'domain intern.example.com'],
  'ffuf.json': [
    'endpoint https://www.example.com/admin',
    'domain www.example.com',
    'endpoint https://www.example.com/a]%7Db',
  ],
  'ffuf.jsonl': ['endpoint https://www.example.com/admin', 'domain www.example.com'],
  'gowitness.jsonl': [
    'endpoint https://www.example.com/',
    'domain www.example.com',
    'address 192.0.2.80',
    'service 192.0.2.80/tcp/443',
    'technology https://www.example.com/ nginx',
  ],
  'httpx-1.2.jsonl': [
    'endpoint https://www.example.com/',
    'domain www.example.com',
    'address 192.0.2.80',
    'service 192.0.2.80/tcp/443',
    'technology https://www.example.com/ nginx',
  ],
  'httpx.jsonl': [
    'endpoint https://www.example.com/',
    'domain www.example.com',
    'address 192.0.2.80',
    'service 192.0.2.80/tcp/443',
    'technology https://www.example.com/ nginx',
    'technology https://www.example.com/ hsts',
    'certificate e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'endpoint http://192.0.2.90:8080/login?next=%2F',
    'address 192.0.2.90',
    'service 192.0.2.90/tcp/8080',
  ],
  'httpx.txt': [
    'endpoint https://www.example.com/',
    'domain www.example.com',
    'endpoint http://192.0.2.90:8080/',
    'address 192.0.2.90',
    'service 192.0.2.90/tcp/8080',
  ],
  'katana-0.0.jsonl': ['endpoint https://www.example.com/app.js', 'domain www.example.com'],
  'katana.jsonl': [
    'endpoint https://www.example.com/app.js',
    'domain www.example.com',
    'technology https://www.example.com/app.js nginx',
    'endpoint https://www.example.com/login',
  ],
  'katana.txt': [
    'endpoint https://www.example.com/',
    'domain www.example.com',
    'endpoint https://www.example.com/app.js',
  ],
  'masscan-1.0.3.json': ['address 192.0.2.2', 'service 192.0.2.2/tcp/80', 'service 192.0.2.2/tcp/443'],
  'masscan-1.0.6.json': ['address 192.0.2.2', 'service 192.0.2.2/tcp/22', 'service 192.0.2.2/tcp/22'],
  'masscan-1.3.2.json': ['address 192.0.2.2', 'service 192.0.2.2/tcp/18080'],
  'masscan-1.3.2.list': ['address 192.0.2.2', 'service 192.0.2.2/tcp/18080'],
  'masscan-1.3.2.ndjson': ['address 192.0.2.2', 'service 192.0.2.2/tcp/18080'],
  'masscan-1.3.2.xml': ['address 192.0.2.2', 'service 192.0.2.2/tcp/18080'],
  'masscan-banners.json': [
    'address 192.0.2.2',
    'service 192.0.2.2/tcp/22',
    'service 192.0.2.2/tcp/22',
    'address 192.0.2.3',
    'service 192.0.2.3/tcp/80',
    'address 192.0.2.5',
  ],
  'masscan-banners.list': [
    'address 192.0.2.2',
    'service 192.0.2.2/tcp/80',
    'service 192.0.2.2/tcp/80',
    'service 192.0.2.2/tcp/22',
  ],
  'masscan-banners.ndjson': [
    'address 2001:db8::2',
    'service 2001:db8::2/tcp/22',
    'service 2001:db8::2/tcp/22',
  ],
  'masscan-banners.xml': [
    'address 192.0.2.2',
    'service 192.0.2.2/tcp/22',
    'address 192.0.2.2',
    'service 192.0.2.2/tcp/22',
  ],
  'naabu-2.0.jsonl': [
    'domain www.example.com',
    'address 192.0.2.80',
    'service 192.0.2.80/tcp/8080',
    'domain old.example.com',
  ],
  'naabu-2.1.jsonl': [
    'domain www.example.com',
    'address 192.0.2.80',
    'service 192.0.2.80/tcp/443',
    'address 192.0.2.53',
    'service 192.0.2.53/udp/53',
  ],
  'naabu.jsonl': [
    'domain www.example.com',
    'address 192.0.2.80',
    'service 192.0.2.80/tcp/443',
    'address 192.0.2.22',
    'service 192.0.2.22/tcp/22',
    'address 192.0.2.53',
    'service 192.0.2.53/udp/53',
    'domain alive.example.com',
    'address 192.0.2.99',
  ],
  'naabu.txt': [
    'domain www.example.com',
    'address 192.0.2.80',
    'service 192.0.2.80/tcp/8080',
    'address 2001:db8::80',
    'service 2001:db8::80/tcp/22',
  ],
  'nmap-7.93-ipv6.xml': ['address ::1', 'service ::1/tcp/18080'],
  'nmap-7.93.xml': [
    'address 127.0.0.1',
    'service 127.0.0.1/tcp/18080',
    'service 127.0.0.1/tcp/18443',
    'certificate 396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953',
    'address 127.0.0.2',
  ],
  'nuclei-2.5.jsonl': [
    'finding nuclei http-missing-security-headers:x-frame-options www.example.com:443 https://www.example.com/',
    'domain www.example.com',
    'address 192.0.2.80',
  ],
  'nuclei-export.json': [
    'finding nuclei http-missing-security-headers:x-frame-options www.example.com:443 https://www.example.com/',
    'domain www.example.com',
    'address 192.0.2.80',
    'finding nuclei CVE-2021-41773 192.0.2.90:8080 http://192.0.2.90:8080/icons/.%2e/etc/passwd',
    'address 192.0.2.90',
  ],
  'nuclei.jsonl': [
    'finding nuclei http-missing-security-headers:x-frame-options www.example.com:443 https://www.example.com/',
    'domain www.example.com',
    'address 192.0.2.80',
    'finding nuclei CVE-2021-41773 192.0.2.90:8080 http://192.0.2.90:8080/icons/.%2e/etc/passwd',
    'address 192.0.2.90',
    'finding nuclei openssh-detect 192.0.2.22:22 192.0.2.22:22',
    'address 192.0.2.22',
    'finding nuclei caa-fingerprint example.com example.com',
    'domain example.com',
  ],
  'nuclei.txt': [
    'finding nuclei http-missing-security-headers:x-frame-options www.example.com:443 https://www.example.com/',
    'domain www.example.com',
    'finding nuclei openssh-detect 192.0.2.22:22 192.0.2.22:22',
    'address 192.0.2.22',
  ],
  'sslscan-2.0.7.xml': [
    'address 127.0.0.1',
    'service 127.0.0.1/tcp/18443',
    'certificate 396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953',
    'finding sslscan certificate:self-signed 127.0.0.1:18443',
  ],
  'sslscan-named.xml': [
    'domain www.example.test',
    'address 127.0.0.1',
    'service 127.0.0.1/tcp/18443',
    'certificate 396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953',
    'finding sslscan certificate:self-signed 127.0.0.1:18443',
  ],
  'sslscan-weak.xml': [
    'address 127.0.0.1',
    'service 127.0.0.1/tcp/18444',
    'certificate 396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953',
    'finding sslscan protocol:TLSv1.0 127.0.0.1:18444',
    'finding sslscan protocol:TLSv1.1 127.0.0.1:18444',
    'finding sslscan cipher:null 127.0.0.1:18444',
    'finding sslscan cipher:anonymous 127.0.0.1:18444',
    'finding sslscan certificate:self-signed 127.0.0.1:18444',
  ],
  'subfinder-2.4.jsonl': [
    'domain www.example.com',
    'domain mail.example.com',
    'address 192.0.2.25',
    'dns mail.example.com A 192.0.2.25',
  ],
  'subfinder.jsonl': [
    'domain www.example.com',
    'domain api.example.com',
    'domain mail.example.com',
    'address 192.0.2.25',
    'dns mail.example.com A 192.0.2.25',
  ],
  'subfinder.txt': [
    'domain www.example.com',
    'domain mail.example.com',
    'address 192.0.2.25',
    'dns mail.example.com A 192.0.2.25',
    'domain api.example.com',
  ],
  'testssl-3.0.8.json': [
    'address 127.0.0.1',
    'service 127.0.0.1/tcp/18444',
    'finding testssl TLS1 127.0.0.1:18444',
    'service 127.0.0.1/tcp/18444',
    'finding testssl TLS1_1 127.0.0.1:18444',
    'service 127.0.0.1/tcp/18444',
    'certificate 396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953',
    'service 127.0.0.1/tcp/18444',
    'finding testssl cert_chain_of_trust 127.0.0.1:18444',
    'finding testssl cert_validityPeriod 127.0.0.1:18444',
    'finding testssl cert_revocation 127.0.0.1:18444',
  ],
  'testssl-named.json': [
    'domain www.example.test',
    'address 127.0.0.1',
    'service 127.0.0.1/tcp/18443',
    'service 127.0.0.1/tcp/18443',
    'finding testssl LUCKY13 127.0.0.1:18443',
  ],
  'testssl-pretty.json': [
    'address 127.0.0.1',
    'service 127.0.0.1/tcp/18444',
    'finding testssl TLS1 127.0.0.1:18444',
    'service 127.0.0.1/tcp/18444',
    'finding testssl TLS1_1 127.0.0.1:18444',
    'service 127.0.0.1/tcp/18444',
    'certificate 396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953',
    'service 127.0.0.1/tcp/18444',
    'finding testssl cert_chain_of_trust 127.0.0.1:18444',
    'finding testssl cert_validityPeriod 127.0.0.1:18444',
    'finding testssl cert_revocation 127.0.0.1:18444',
  ],
  'tlsx.jsonl': [
    'domain www.example.com',
    'address 192.0.2.80',
    'service 192.0.2.80/tcp/443',
    'certificate e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'certificate 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03',
  ],
  'tlsx.txt': ['domain www.example.com', 'address 192.0.2.80', 'service 192.0.2.80/tcp/8443'],
};

test('every sample is known', () => {
  expect(sampleFiles).toEqual(Object.keys(expected).toSorted());
});

test.each(Object.keys(expected))('%s: its records, and nothing bad', async (file) => {
  for (const chunkSize of [1, 37, 65_536]) {
    const events = await eventsOf(sample(file), { reader: readerOfSample(file) }, chunkSize);
    expect(keysOf(events)).toEqual(expected[file]);
    expect(events.filter(({ kind }) => kind === 'bad' || kind === 'warning')).toEqual([]);
  }
});

const toolNames = readerNames.filter((name) => readerCatalog[name].ownRecords);

test.each(toolNames)(
  '%s: rows have the fields that the catalog promises, and records its types',
  async (name) => {
    const entry = readerCatalog[name];
    const promised = Object.keys(entry.rowFields ?? {});
    const seenTypes = new Set<string>();
    const seenFields = new Set<string>();
    for (const file of sampleFiles.filter((candidate) => readerOfSample(candidate) === name)) {
      for (const event of await eventsOf(sample(file), { reader: name })) {
        if (event.kind !== 'row' && event.kind !== 'records') continue;
        for (const { type } of event.records) seenTypes.add(type);
        if (event.kind === 'row') for (const field of Object.keys(event.row)) seenFields.add(field);
      }
    }
    expect([...seenTypes].toSorted()).toEqual([...entry.records].toSorted());
    expect(promised.filter((field) => !seenFields.has(field))).toEqual([]);
  },
);

test('one name means one thing in every reader', () => {
  const meanings = new Map<string, Set<string>>();
  for (const name of toolNames)
    for (const [field, help] of Object.entries(readerCatalog[name].rowFields ?? {}))
      meanings.set(field, (meanings.get(field) ?? new Set()).add(help));
  // These say the same with what is special to a tool.
  const special = new Set(
    'host ip port url service title error timestamp scheme path rule severity target'.split(' '),
  );
  const split = [...meanings].filter(([field, helps]) => helps.size > 1 && !special.has(field));
  expect(split.map(([field, helps]) => [field, ...helps])).toEqual([]);
});

describe('rows', () => {
  const rowsOf = async (file: string) =>
    only(await eventsOf(sample(file), { reader: readerOfSample(file) }), 'row').map(({ row }) => row);

  test('of httpx: the address is found in every version, and what did not answer has no URL', async () => {
    expect(await rowsOf('httpx.jsonl')).toMatchObject([
      { url: 'https://www.example.com/', host: 'www.example.com', ip: '192.0.2.80', port: 443, status: 200 },
      { url: 'http://192.0.2.90:8080/login?next=%2F', host: '192.0.2.90', ip: '192.0.2.90', port: 8080 },
      { url: null, host: 'closed.example.com', failed: true },
    ]);
    expect(await rowsOf('httpx-1.2.jsonl')).toMatchObject([
      {
        url: 'https://www.example.com/',
        ip: '192.0.2.80',
        status: 200,
        content_length: 48,
        technologies: ['Nginx'],
      },
    ]);
  });

  test('of a tool carry its other fields, but no pages', async () => {
    const [row] = await rowsOf('nuclei.jsonl');
    expect(row).toHaveProperty('template_url');
    expect(row).not.toHaveProperty('request');
    const [shot] = await rowsOf('gowitness.jsonl');
    expect(shot).not.toHaveProperty('html');
  });

  test('of naabu: the port is a number, whichever way it was written', async () => {
    const ports = ['naabu.jsonl', 'naabu-2.1.jsonl', 'naabu-2.0.jsonl', 'naabu.txt'].map(async (file) =>
      (await rowsOf(file)).map(({ host, port, protocol }) => [host, port, protocol]),
    );
    expect(await Promise.all(ports)).toEqual([
      [
        ['www.example.com', 443, 'tcp'],
        ['192.0.2.22', 22, 'tcp'],
        ['192.0.2.53', 53, 'udp'],
        ['alive.example.com', null, 'tcp'],
      ],
      [
        ['www.example.com', 443, 'tcp'],
        ['192.0.2.53', 53, 'udp'],
      ],
      [
        ['www.example.com', 8080, 'tcp'],
        ['old.example.com', 80, 'tcp'],
      ],
      [
        ['www.example.com', 443, 'tcp'],
        ['192.0.2.80', 8080, 'tcp'],
        ['2001:db8::80', 22, 'tcp'],
      ],
    ]);
  });

  test('of nuclei: one finding has one key in every version, and a failed matcher is none', async () => {
    const keys = ['nuclei.jsonl', 'nuclei-2.5.jsonl', 'nuclei-export.json', 'nuclei.txt'].map(
      (file) => expected[file]?.[0],
    );
    expect(new Set(keys).size).toBe(1);
    expect((await rowsOf('nuclei.jsonl')).map(({ matched }) => matched)).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
  });
});

describe('cases', () => {
  test('an odd row of nuclei is a finding like its neighbours', async () => {
    const events = await eventsOf(caseFile('nuclei-odd-row.jsonl'), { reader: 'nuclei' });
    expect(keysOf(events).filter((key) => key.startsWith('finding'))).toEqual([
      'finding nuclei tls-version a.example.test:443 a.example.test:443',
      'finding nuclei header-missing b.example.test:80 http://b.example.test/',
      'finding nuclei panel c.example.test:80 http://c.example.test/admin',
    ]);
    expect(only(events, 'bad')).toEqual([]);
  });

  test('hostile bytes are read by httpx’s reader, and the bad line is told', async () => {
    const events = await eventsOf(caseFile('hostile-bytes.jsonl'), { reader: 'httpx' });
    expect(only(events, 'row').map(({ row }) => row.title)).toEqual([
      'ok',
      'nul \uFFFD here',
      'lone \uFFFD surrogate',
      'latin1 \uFFFD',
      '<script>alert(1)</script>',
      '=HYPERLINK("http://x")',
      'ok',
    ]);
    expect(only(events, 'bad')).toEqual([
      { kind: 'bad', ordinal: 0, reason: 'the line is no JSON', sample: 'not json at all' },
    ]);
  });

  test('two versions of one service are two rows of naabu’s reader, the later one last', async () => {
    const events = await eventsOf(caseFile('services-duplicate-key.jsonl'), { reader: 'naabu' });
    const services = only(events, 'row').flatMap(({ records }) =>
      records.filter(({ type }) => type === 'service'),
    );
    expect(services.map(({ fields }) => [fields.address, fields.port, fields.version])).toEqual([
      ['198.51.100.20', 80, '1.0'],
      ['198.51.100.20', 80, '2.0'],
      ['198.51.100.21', 22, null],
    ]);
  });

  test('an empty file is nothing to any tool', async () => {
    // Of XML nothing at all is a file that was cut.
    for (const name of toolNames.filter((candidate) => !['nmap-xml', 'sslscan'].includes(candidate)))
      expect(await eventsOf('', { reader: name })).toEqual([]);
  });
});

test('a host that every row repeats is stated again only where something changed', async () => {
  const rows = ['00:00:5e:00:53:01', '00:00:5e:00:53:01', '00:00:5e:00:53:02', '00:00:5e:00:53:01'].map(
    (mac, index) => JSON.stringify({ ip: '192.0.2.1', port: index + 1, mac_address: mac }),
  );
  const events = await eventsOf(rows.join('\n'), { reader: 'naabu' });
  expect(keysOf(events)).toEqual([
    'address 192.0.2.1',
    'service 192.0.2.1/tcp/1',
    'service 192.0.2.1/tcp/2',
    'address 192.0.2.1',
    'service 192.0.2.1/tcp/3',
    'address 192.0.2.1',
    'service 192.0.2.1/tcp/4',
  ]);
});

test.each(toolNames)('%s: fields of any type never throw, and never cost a neighbour', async (name) => {
  const file = sampleFiles.find(
    (candidate) => readerOfSample(candidate) === name && /\.(jsonl|ndjson)$/.test(candidate),
  );
  // The XML readers have properties of their own.
  if (file === undefined) return;
  const lines = sample(file).toString().trim().split('\n');
  const neighbour = keysOf(await eventsOf(lines[0] ?? '', { reader: name }));
  const value = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>;
  const odd = fc.constantFrom(...lines).chain((line) => {
    const object = JSON.parse(line) as Record<string, JsonValue>;
    return fc
      .dictionary(fc.constantFrom(...Object.keys(object)), value, { maxKeys: 4 })
      .map((changed) => JSON.stringify({ ...object, ...changed }));
  });
  await fc.assert(
    fc.asyncProperty(odd, async (line) => {
      const events = await eventsOf(`${line}\n{"x":1}\n${lines[0]}\n`, { reader: name });
      expect(JSON.stringify(events).isWellFormed()).toBe(true);
      const keys = keysOf(events).filter((key) => !key.startsWith('refused'));
      for (const key of neighbour) expect(keys).toContain(key);
    }),
    { seed, numRuns: 200 },
  );
});

test.each(toolNames)('%s: whatever the text is, it is told and not thrown', async (name) => {
  const lines = sampleFiles
    .filter((file) => readerOfSample(file) === name)
    .flatMap((file) => sample(file).toString().split('\n'));
  const piece = fc.oneof(
    fc.constantFrom(...lines),
    fc.constantFrom('[', ']', '{', '}', ',', '\n', '[INF] go', 'x', '<nmaprun>', '# end', '\0', '"'),
    fc.string({ unit: 'binary', maxLength: 10 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), fc.constantFrom('\n', ''), async (pieces, by) => {
      const events = await eventsOf(pieces.join(by), { reader: name }, 50);
      expect(JSON.stringify(events).isWellFormed()).toBe(true);
      for (const kind of ['row', 'bad', 'records'] as const)
        expect(only(events, kind).map(({ ordinal }) => ordinal)).toEqual(
          only(events, kind).map((_, at) => at),
        );
    }),
    { seed, numRuns: 200 },
  );
});
