import fc from 'fast-check';
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { JsonScanner } from '#sonar/readers/json-scanner.ts';
import { maxLineBytes } from '#sonar/readers/line-stream.ts';
import { caseFile, eventsOf, only } from './events-of.ts';

const seed = 20_011;
const read = async (content: string | Uint8Array, chunkSize?: number) => {
  const events = await eventsOf(content, { reader: 'json' }, chunkSize);
  return {
    rows: only(events, 'row').map(({ row }) => row),
    bad: only(events, 'bad').map(({ sample }) => sample),
    warnings: only(events, 'warning').map(({ message }) => message),
  };
};
const cut = 'the output was cut: it ends before its brackets do';
const objects = [{ a: 1 }, { b: { c: ['}', ']', '"', '\\', '{\n'] } }, { d: [] }];
const lines = objects.map((object) => JSON.stringify(object));

describe('objects are found in', () => {
  test.each<[string, string]>([
    ['an array', JSON.stringify(objects)],
    ['an array over many lines', JSON.stringify(objects, null, 2)],
    ['an array over many lines, by tabs', JSON.stringify(objects, null, '\t')],
    ['an array with a byte order mark', `\ufeff${JSON.stringify(objects)}`],
    ['an array with a trailing comma', `[\n${lines.join(',\n')},\n]\n`],
    ['an array with commas that lead', `[\n${lines.join('\n,')}\n]`],
    ['lines', lines.join('\n')],
    ['lines with CRLF', `${lines.join('\r\n')}\r\n`],
    ['lines with a byte order mark', `\ufeff${lines.join('\n')}`],
    ['lines that end with commas', `${lines.join(',\n')}\n`],
    ['objects over many lines', objects.map((object) => JSON.stringify(object, null, 2)).join('\n')],
    ['arrays one after another', lines.map((line) => `[${line}]`).join('\n')],
    ['arrays in an array', JSON.stringify([objects.slice(0, 2), [], [objects.slice(2)]])],
    ['blanks', `\n\n  \t[ ${lines.join(' , ')} ] \n`],
  ])('%s', async (_, content) => {
    for (const chunkSize of [1, 3, 7, 65_536])
      expect(await read(content, chunkSize)).toEqual({ rows: objects, bad: [], warnings: [] });
  });

  test('nothing', async () => {
    for (const content of ['', '\n', '[]', '[\n]\n', '\ufeff'])
      expect(await read(content)).toEqual({ rows: [], bad: [], warnings: [] });
  });
});

describe('one bad object costs itself alone', () => {
  test.each<[string, string, unknown[], string[]]>([
    ['an element that is none', '[{"a":1}, 7, "x, y]", null, {"a":2}]', [1, 2], ['7', '"x, y]"', 'null']],
    ['a broken one on its line', '[\n{"a":1},\n{"a":},\n{"a":2}\n]', [1, 2], ['{"a":}']],
    ['a string never closed', '[\n{"a":1},\n{"a":"x},\n{"a":2}\n]', [1, 2], ['{"a":"x},']],
    ['a brace never closed', '[\n{"a":1},\n{"a":{"b":1},\n{"a":2}\n]', [1, 2], ['{"a":{"b":1},\uFFFD']],
    ['the first one', '[\n{"a":"x},\n{"a":1},\n{"a":2}\n]', [1, 2], ['{"a":"x},']],
    [
      'among many lines',
      '[\n  {\n    "a":\n  },\n  {\n    "a": 1\n  }\n]',
      [1],
      ['{\uFFFD    "a":\uFFFD  }'],
    ],
    ['a banner first', 'tool 1.0\n[INF] go\n[{"a":1},{"a":2}]', [1, 2], ['tool 1.0', '[INF] go']],
    ['in lines', '[INF] go\n{"a":1}\n{"a":\n[1]\n{"a":2}', [1, 2], ['[INF] go', '{"a":', '[1]']],
  ])('%s', async (_, content, rows, bad) => {
    for (const chunkSize of [1, 65_536]) {
      const result = await read(content, chunkSize);
      expect(result.rows.map(({ a }) => a)).toEqual(rows);
      expect(result.bad).toEqual(bad);
      expect(result.warnings).toEqual([]);
    }
  });

  test('one that is too long is passed over', async () => {
    const content = `[{"a":"${'x'.repeat(3 * maxLineBytes)}"},{"a":1}]`;
    for (const chunkSize of [1_000, 65_536, 8 * maxLineBytes]) {
      const { rows, bad } = await read(content, chunkSize);
      expect(rows).toEqual([{ a: 1 }]);
      expect(bad).toEqual([expect.stringMatching(/^\{"a":"x{193}…$/)]);
    }
  });
});

test('of an array that is cut anywhere, a prefix lands and the cut is told', async () => {
  for (const content of [JSON.stringify(objects), JSON.stringify(objects, null, 2)])
    for (let length = 1; length < content.length; length += 1) {
      const { rows, bad, warnings } = await read(content.slice(0, length));
      expect(rows).toEqual(objects.slice(0, rows.length));
      expect(bad.length).toBeLessThanOrEqual(1);
      expect(warnings).toEqual([cut]);
    }
});

test('hostile bytes land as in JSON Lines', async () => {
  const content = caseFile('hostile-bytes.jsonl').toString('latin1').trim().split('\n');
  const array = Buffer.from(`[\n${content.join(',\n')}\n]`, 'latin1');
  const { rows, bad } = await read(array);
  expect(rows.map(({ title }) => title)).toEqual([
    'ok',
    'nul \uFFFD here',
    'lone \uFFFD surrogate',
    'latin1 \uFFFD',
    '<script>alert(1)</script>',
    '=HYPERLINK("http://x")',
    'ok',
  ]);
  expect(bad).toEqual(['not json at all']);
});

test('whatever objects there are, and however they are printed and cut into chunks, each lands', async () => {
  const key = fc.constantFrom('a', 'results', '{', '"', '\\', ']', 'ä');
  const value = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, fc.string(), fc.integer(), fc.array(tie('value')), tie('object')),
    object: fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  }));
  const object = fc.dictionary(key, value.value as fc.Arbitrary<JsonValue>, { minKeys: 1, maxKeys: 4 });
  const form = fc.constantFrom<(objects: object[]) => string>(
    (all) => JSON.stringify(all),
    (all) => JSON.stringify(all, null, 2),
    (all) => all.map((one) => JSON.stringify(one)).join('\n'),
    (all) => all.map((one) => JSON.stringify(one, null, 1)).join('\n'),
    (all) => `[\n${all.map((one) => `${JSON.stringify(one)}\n`).join(',')}]`,
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(object, { minLength: 1, maxLength: 6 }),
      form,
      fc.integer({ min: 1, max: 40 }),
      async (all, print, chunkSize) => {
        const { rows, bad, warnings } = await read(print(all), chunkSize);
        expect([bad, warnings]).toEqual([[], []]);
        expect(rows).toHaveLength(all.length);
      },
    ),
    { seed, numRuns: 500 },
  );
});

test('whatever the bytes are, the reader does not throw', async () => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    '\\',
    ',',
    ':',
    '\n',
    '1',
    '{"a":1}',
    ' ',
    'x',
    '\0',
    '\ufeff',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 30 }),
      fc.integer({ min: 1, max: 9 }),
      async (all, size) => {
        for (const event of await eventsOf(all.join(''), { reader: 'json' }, size))
          expect(JSON.stringify(event).isWellFormed()).toBe(true);
      },
    ),
    { seed, numRuns: 1_000 },
  );
});

test('wherever a chunk ends, the object around an array is read to its end', async () => {
  const filler = JSON.stringify({ url: 'http://a.test/', input: { FUZZ: 'x' }, status: 200 });
  const results = `${`${filler},`.repeat(10)}${filler.replace('x', 'y\\n')}`;
  const text = `{"commandline":"ffuf",\n"results":[\n${results}],"config":{}}`;
  const spec = { reader: 'ffuf', record: null, fields: {} };
  for (let at = 1; at < text.length; at += 1) {
    const scanner = new JsonScanner({ wrapper: 'results', oneLine: false });
    const [first, second] = [text.slice(0, at), text.slice(at)].map((part) =>
      scanner.push(Buffer.from(part)),
    );
    expect([(first?.length ?? 0) + (second?.length ?? 0), scanner.end()]).toEqual([
      11,
      { pieces: [], cut: false },
    ]);
  }
  expect(only(await eventsOf(text, spec), 'warning')).toEqual([]);
});
