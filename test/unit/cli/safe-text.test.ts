import fc from 'fast-check';
import { displayWidth, pad, safeJson, safeText, truncate } from '#sonar/cli/safe-text.ts';

const hostile = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      '\u001b',
      '[',
      ']',
      '0',
      ';',
      'm',
      '\u0007',
      '\\',
      '\u009b',
      '\u009d',
      'x',
      '世',
      '\u202e',
      '\ud800',
    ),
  }),
);

test.each([
  ['a colour', '\u001b[31mred\u001b[0m', 'red'],
  ['a window title', 'a\u001b]0;owned\u0007b', 'ab'],
  ['a hyperlink', '\u001b]8;;http://evil.test\u001b\\click\u001b]8;;\u001b\\', 'click'],
  ['a title without an end', 'a\u001b]0;title', 'a0;title'],
  ['a cursor movement in one byte', 'a\u009b2Jb', 'ab'],
  ['a reset of the terminal', 'a\u001bcb', 'ab'],
  ['line ends and tabs', 'a\r\n\tb\u2028c', 'a b c'],
  ['a turn of direction', 'exe.\u202egpj', 'exe.gpj'],
  ['NUL and DEL', 'a\u0000b\u007f', 'ab'],
  ['a lone surrogate', 'a\ud800b', 'a\ufffdb'],
])('%s does nothing to the terminal', (_, text, safe) => {
  expect(safeText(text)).toBe(safe);
});

test('no control character gets through, whatever the text', () => {
  fc.assert(
    fc.property(hostile, (text) => !/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u.test(safeText(text))),
    { numRuns: 500 },
  );
});

test('a value of megabytes is cut before it is looked at', () => {
  expect(safeText('\u001b]'.repeat(2_000_000)).length).toBeLessThan(5000);
});

test('wide characters take two columns, marks none', () => {
  expect(displayWidth('世界')).toBe(4);
  expect(displayWidth('e\u0301')).toBe(1);
  expect(displayWidth('🦈')).toBe(2);
});

test('what is cut or filled has exactly the width asked for', () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 0, max: 40 }), (text, width) => {
      const safe = safeText(text);
      expect(displayWidth(truncate(safe, width))).toBeLessThanOrEqual(width);
      expect(displayWidth(pad(safe, width, 'right'))).toBe(width);
    }),
    { numRuns: 300 },
  );
});

test('JSON keeps its value and holds nothing that a terminal obeys', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const json = safeJson({ text }, 0);
      expect(json).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
      expect(JSON.parse(json)).toEqual({ text });
    }),
    { numRuns: 300 },
  );
});
