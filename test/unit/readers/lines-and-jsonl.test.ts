import fc from 'fast-check';
import { recordKey } from '#sonar/domain/records.ts';
import { maxLineBytes } from '#sonar/readers/line-stream.ts';
import { readerFor, readerNames } from '#sonar/readers/registry.ts';
import { caseFile, eventsOf, only } from './events-of.ts';

const seed = 20_007;
const linesOf = async (content: string | Uint8Array, chunkSize?: number): Promise<unknown[]> =>
  only(await eventsOf(content, { reader: 'lines' }, chunkSize), 'row').map(({ row }) => row.line);

describe('lines', () => {
  test.each<[string, string | Uint8Array, string[]]>([
    ['nothing', '', []],
    ['only ends', '\n\r\n\n', []],
    ['no last end', 'a\nb', ['a', 'b']],
    ['CRLF', 'a\r\n b \r\n\r\nc\r\n', ['a', ' b ', 'c']],
    ['a byte order mark', '\ufeffa\n\ufeffb', ['a', '\ufeffb']],
    ['a byte order mark alone', '\ufeff\n', []],
    ['blank lines', ' \n\t\na', ['a']],
    ['invalid UTF-8', Buffer.from([0x61, 0xe9, 0x0a, 0xff, 0x0a, 0xc3]), ['a\uFFFD', '\uFFFD', '\uFFFD']],
    ['NUL', 'a\0b', ['a\uFFFDb']],
    ['a return within', 'a\rb\n', ['a\rb']],
  ])('%s', async (_, content, expected) => {
    for (const chunkSize of [1, 2, 3, 65_536]) expect(await linesOf(content, chunkSize)).toEqual(expected);
  });

  test('are the same however the bytes are cut', async () => {
    const text = fc
      .array(fc.constantFrom('a', 'ä', '€', '😀', '\n', '\r\n', '\r', '\ufeff', ' '), { maxLength: 40 })
      .map((pieces) => pieces.join(''));
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 9 }), async (content, chunkSize) => {
        const expected = content
          .replace(/^\ufeff/, '')
          .split('\n')
          .map((line) => line.replace(/\r$/, ''))
          .filter((line) => line.trim() !== '');
        expect(await linesOf(content, chunkSize)).toEqual(expected);
      }),
      { seed },
    );
  });

  test('are right although the source uses one buffer for every chunk', async () => {
    async function* reused(): AsyncGenerator<Uint8Array> {
      const chunk = new Uint8Array(4);
      for (const piece of ['abcd', 'ef\ng', 'hij\n']) {
        chunk.set(Buffer.from(piece));
        yield chunk;
      }
    }
    const spec = { reader: 'lines', record: null, fields: {} };
    const lines: unknown[] = [];
    for await (const event of readerFor(spec).read(reused(), spec))
      if (event.kind === 'row') lines.push(event.row.line);
    expect(lines).toEqual(['abcdef', 'ghij']);
  });

  test.each([100, 65_536, 4 * maxLineBytes])(
    'a line beyond 1 MiB is bad and loses none of its neighbours (chunks of %d)',
    async (chunkSize) => {
      const fits = 'x'.repeat(maxLineBytes);
      const content = `a\n${fits}\r\n${fits}y\n${fits}${fits}${fits}\nb`;
      const events = await eventsOf(content, { reader: 'lines' }, chunkSize);
      expect(only(events, 'row').map(({ ordinal }) => ordinal)).toEqual([0, 1, 2]);
      expect(only(events, 'row').at(-1)?.row.line).toBe('b');
      const reason = `the line is longer than ${maxLineBytes} bytes`;
      const sample = `${'x'.repeat(199)}…`;
      expect(only(events, 'bad')).toEqual(
        [0, 1].map((ordinal) => ({ kind: 'bad', ordinal, reason, sample })),
      );
    },
  );

  test('make records by the definition', async () => {
    const events = await eventsOf('192.0.2.1\nnonsense\n', {
      reader: 'lines',
      record: 'address',
      fields: { ip: 'line' },
    });
    const keyed = only(events, 'row').map(({ records: [record] }) => record && recordKey(record));
    expect(keyed).toMatchObject([{ ok: true, key: '192.0.2.1' }, { ok: false }]);
  });

  test('that are hostile stay text', async () => {
    expect(await linesOf(caseFile('targets-hostile.txt'))).toEqual([
      'good.example.test',
      'a.example.test;id',
      '$(id)',
      '-oN',
      '`id`',
      '"quoted name"',
    ]);
    expect(await linesOf(caseFile('empty.txt'))).toEqual([]);
  });
});

describe('jsonl', () => {
  test('each JSON line of the hostile bytes lands, the other is counted and sampled', async () => {
    const spec = { reader: 'jsonl', record: 'endpoint', fields: { url: 'url', title: 'title' } };
    const events = await eventsOf(caseFile('hostile-bytes.jsonl'), spec);
    const records = only(events, 'row').flatMap(({ records }) => records.map((draft) => recordKey(draft)));
    expect(records.map((record) => (record.ok ? [record.key, record.fields.title] : record))).toEqual([
      ['http://a.example.test/', 'ok'],
      ['http://b.example.test/', 'nul \uFFFD here'],
      ['http://c.example.test/', 'lone \uFFFD surrogate'],
      ['http://d.example.test/', 'latin1 \uFFFD'],
      ['http://e.example.test/', '<script>alert(1)</script>'],
      ['http://f.example.test/', '=HYPERLINK("http://x")'],
      ['http://g.example.test/', 'ok'],
    ]);
    expect(only(events, 'bad')).toEqual([
      { kind: 'bad', ordinal: 0, reason: 'the line is no JSON', sample: 'not json at all' },
    ]);
  });

  test('a row with a key missing or null is a row', async () => {
    const events = await eventsOf(caseFile('nuclei-odd-row.jsonl'), { reader: 'jsonl' });
    expect(only(events, 'row').map(({ row, ordinal }) => [ordinal, row['template-id']])).toEqual([
      [0, 'tls-version'],
      [1, 'header-missing'],
      [2, 'panel'],
    ]);
    expect(only(events, 'bad')).toEqual([]);
  });

  test('one key twice gives two drafts of one identity', async () => {
    const fields = { address: 'ip', port: 'port', protocol: 'protocol', version: 'version' };
    const events = await eventsOf(caseFile('services-duplicate-key.jsonl'), {
      reader: 'jsonl',
      record: 'service',
      fields,
    });
    const keys = only(events, 'row').map(({ records: [record] }) => record && recordKey(record));
    expect(keys).toMatchObject([
      { key: '198.51.100.20/tcp/80', fields: { version: '1.0' } },
      { key: '198.51.100.20/tcp/80', fields: { version: '2.0' } },
      { key: '198.51.100.21/tcp/22' },
    ]);
  });

  test('what is no object is bad, with ordinals of its own', async () => {
    const events = await eventsOf('{"a":1}\n[1]\nnull\n"x"\n{"a":\n\n{"a":2}\n{"a":3}}', { reader: 'jsonl' });
    expect(events.map((event) => [event.kind, 'ordinal' in event && event.ordinal])).toEqual([
      ['row', 0],
      ['bad', 0],
      ['bad', 1],
      ['bad', 2],
      ['bad', 3],
      ['row', 1],
      ['bad', 4],
    ]);
  });

  test('fields are reached by dotted paths, and a row without fields map gives its own', async () => {
    const content = '{"url":"http://a.test/","info":{"tls":{"subject":"CN=a"}},"a.b":1}';
    const mapped = await eventsOf(content, {
      reader: 'jsonl',
      record: 'endpoint',
      fields: { url: 'url', subject: 'info.tls.subject', dotted: 'a.b', none: 'x.y' },
    });
    expect(only(mapped, 'row')[0]?.records).toEqual([
      { type: 'endpoint', fields: { url: 'http://a.test/', subject: 'CN=a', dotted: 1 } },
    ]);
    const own = await eventsOf(content, { reader: 'jsonl', record: 'endpoint' });
    expect(only(own, 'row')[0]?.records[0]?.fields).toHaveProperty('info');
  });

  test('deep nesting is cut, not fatal', async () => {
    const events = await eventsOf(`{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}\n{"b":1}`, {
      reader: 'jsonl',
    });
    expect(events.map(({ kind }) => kind)).toEqual(['row', 'row']);
  });
});

test('a reader is found by its name, and by no other', () => {
  expect(readerNames.map((name) => readerFor({ reader: name }).name)).toEqual(readerNames);
  expect(() => readerFor({ reader: 'toString' })).toThrow('there is no reader toString');
});
