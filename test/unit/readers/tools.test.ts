// What each reader makes of each dialect of its tool: every sample in test/fixtures/readers has its records listed.
import fc from 'fast-check';
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { readerCatalog, readerNames } from '#sonar/definition/reader-catalog.ts';
import { caseFile, eventsOf, only } from './events-of.ts';
import { sampleRecords } from './sample-records.ts';
import { keysOf, readerOfSample, sample, sampleFiles } from './tool-samples.ts';

const seed = 20_014;

test('every sample is known', () => {
  expect(sampleFiles).toEqual(Object.keys(sampleRecords).toSorted());
});

test.each(Object.keys(sampleRecords))('%s: its records, and nothing bad', async (file) => {
  for (const chunkSize of [1, 37, 65_536]) {
    const events = await eventsOf(sample(file), { reader: readerOfSample(file) }, chunkSize);
    expect(keysOf(events)).toEqual(sampleRecords[file]);
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
      (file) => sampleRecords[file]?.[0],
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
