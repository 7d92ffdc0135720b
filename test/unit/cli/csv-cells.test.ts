// A written CSV reads back to the same cells, and no cell of a target's making is a formula.
import fc from 'fast-check';
import { cellText, csvLine, defused } from '#sonar/cli/csv-cells.ts';
import { parseCsv } from '../../fixtures/strict-csv.ts';

test.each([
  '=1+1',
  '+1',
  '-1',
  '@SUM(A1)',
  '\t=1',
  '\r=1',
  '\n=1',
  '\0=1',
  '  =cmd',
  '"=1',
  "'=1",
  ' "\'=1',
  '\u00a0=1',
  '\ufeff=1',
  '＝1',
  '＠x',
])('%j is no formula any more', (text) => {
  expect(defused(text)).toBe(`'${text}`);
});

test.each(['', 'a=1', '1-2', 'x@y.test', '{"a":"=1"}', '10.0.0.1', ' text', '<script>'])(
  '%j stays as it is',
  (text) => {
    expect(defused(text)).toBe(text);
  },
);

test('numbers and flags are not texts of targets; lists and objects are JSON; nothing is empty', () => {
  expect([-5, 1e21, true, null, undefined, ['=x'], { a: 1 }].map((value) => cellText(value))).toEqual([
    '-5',
    '1e+21',
    'true',
    '',
    '',
    '["=x"]',
    '{"a":1}',
  ]);
});

const hostile = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({
    unit: fc.constantFrom('=', '+', '-', '@', '\t', '\r', '\n', '"', "'", ',', ' ', 'a', '\u2028'),
  }),
);

test('any cells read back as they were written, defused', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(hostile, { minLength: 2, maxLength: 2 }), { minLength: 1, maxLength: 8 }),
      (rows) => {
        const cells = rows.map((row) => row.map((cell) => cellText(cell)));
        const read = parseCsv(cells.map(csvLine).join(''));
        expect(read).toEqual(cells);
        expect(cells.flat().filter((cell) => /^[=+\-@\t\r\n]/.test(cell))).toEqual([]);
      },
    ),
    { seed: 20_264 },
  );
});
