import fc from 'fast-check';
import { maxLineBytes } from '#sonar/readers/line-stream.ts';
import { eventsOf, only } from './events-of.ts';

const read = async (content: string | Uint8Array, chunkSize?: number) => {
  const events = await eventsOf(content, { reader: 'csv' }, chunkSize);
  return {
    rows: only(events, 'row').map(({ row }) => row),
    bad: only(events, 'bad').map(({ reason, sample }) => [reason, sample]),
  };
};
const rowsOf = async (content: string | Uint8Array) => (await read(content)).rows;
const never = 'a quote is never closed';

test.each<[string, string, unknown[]]>([
  ['nothing', '', []],
  ['a header alone', 'a,b\n', []],
  [
    'rows',
    'a,b\n1,2\n3,4',
    [
      { a: '1', b: '2' },
      { a: '3', b: '4' },
    ],
  ],
  ['CRLF and a byte order mark', '\ufeffa,b\r\n1,2\r\n', [{ a: '1', b: '2' }]],
  ['a semicolon', 'a;b\n1,5;2\n', [{ a: '1,5', b: '2' }]],
  ['tabs', 'a\tb\n1\t2\n', [{ a: '1', b: '2' }]],
  ['a comma in a quoted name', '"a;b;c",d\n1,2\n', [{ 'a;b;c': '1', d: '2' }]],
  [
    'quotes',
    'a,b\n"x, ""y""","1\n2"\n"",3\n',
    [
      { a: 'x, "y"', b: '1\n2' },
      { a: '', b: '3' },
    ],
  ],
  ['blank lines', 'a,b\n\n1,2\n \n', [{ a: '1', b: '2' }]],
  ['blank lines before the header', '\n\na,b\n1,2\n', [{ a: '1', b: '2' }]],
  ['fields too few and too many', 'a,b\n1\n1,2,3\n', [{ a: '1' }, { a: '1', b: '2', column_3: '3' }]],
  ['columns without a name of their own', 'a,,a\n1,2,3\n', [{ a: '1', column_2: '2', column_3: '3' }]],
  ['a quote within', 'a,b\nx"y,"1"z\n', [{ a: 'x"y', b: '1z' }]],
  ['a column called __proto__', '__proto__,b\n1,2\n', [JSON.parse('{"__proto__":"1","b":"2"}')]],
])('%s', async (_, content, rows) => {
  for (const chunkSize of [1, 65_536]) expect((await read(content, chunkSize)).rows).toEqual(rows);
});

test('a quote that is never closed costs its own line', async () => {
  const good = Array.from({ length: 20_000 }, (_, index) => `${index},${'y'.repeat(100)}\n`).join('');
  for (const rest of ['3,4\n', good]) {
    const { rows, bad } = await read(`a,b\n1,2\nx,"open\n${rest}`);
    expect(bad).toEqual([[never, 'x,"open']]);
    expect(rows).toHaveLength(1 + rest.split('\n').length - 1);
  }
});

// Each line stays open whether it is read as a line or as the rest of a quoted field: read again and again, these would
// cost the square of their number.
test('a file of nothing but open quotes is read a bounded number of times', async () => {
  const lines = 20_000;
  let looks = 0;
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its own `this`
  const { indexOf } = String.prototype;
  const counted = jest.spyOn(String.prototype, 'indexOf').mockImplementation(function (
    this: string,
    ...given
  ) {
    looks += 1;
    if (looks > 100 * lines) throw new Error('read again too often');
    return indexOf.apply(this, given);
  });
  const { rows, bad } = await read(`a,b\n${'x"y,"z\n'.repeat(lines)}1,2\n`).finally(() =>
    counted.mockRestore(),
  );
  expect(rows.at(-1)).toEqual({ a: '1', b: '2' });
  expect(rows.length + bad.length).toBe(lines + 1);
  expect(new Set(bad.map(([reason]) => reason))).toEqual(new Set([never]));
});

test('a line that is too long costs itself, also within quotes', async () => {
  const long = 'z'.repeat(2 * maxLineBytes);
  const { rows, bad } = await read(`a,b\n1,2\n"${long}",5\n3,"4\n${long}\n5,6\n`);
  expect(rows).toEqual([
    { a: '1', b: '2' },
    { a: '5', b: '6' },
  ]);
  expect(bad.map(([reason]) => reason)).toEqual([
    `the line is longer than ${maxLineBytes} bytes`,
    never,
    `the line is longer than ${maxLineBytes} bytes`,
  ]);
});

test('records are made by the definition; hostile values stay text', async () => {
  const events = await eventsOf('url,title\nhttp://a.test/,=cmd()\nhttp://b.test/,a\0b\n', {
    reader: 'csv',
    record: 'endpoint',
    fields: { url: 'url', title: 'title' },
  });
  expect(only(events, 'row').flatMap(({ records }) => records)).toEqual([
    { type: 'endpoint', fields: { url: 'http://a.test/', title: '=cmd()' } },
    { type: 'endpoint', fields: { url: 'http://b.test/', title: 'a\uFFFDb' } },
  ]);
});

test('whatever is quoted comes back', async () => {
  const cell = fc.array(fc.constantFrom('a', '"', ',', '\n', ';', ' ', 'ä'), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(cell, cell), { maxLength: 8 }), async (cells) => {
      const rows = cells.map(([a, b]) => ({ a: a.join(''), b: b.join('') }));
      const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
      const content = rows.map(({ a, b }) => `${quoted(a)},${quoted(b)}\n`).join('');
      expect(await rowsOf(`a,b\n${content}`)).toEqual(rows);
    }),
    { seed: 20_012, numRuns: 300 },
  );
});

test('whatever the text is, no line but the bad ones is lost', async () => {
  const piece = fc.constantFrom('a', '"', ',', '\n', ' ', 'x,y\n');
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 40 }), async (pieces) => {
      const { rows, bad } = await read(`a,b\n${pieces.join('')}\nlast,"1"\n`);
      expect(bad.every(([reason]) => reason === never)).toBe(true);
      expect(rows.length + bad.length).toBeGreaterThan(0);
    }),
    { seed: 20_013, numRuns: 500 },
  );
});
