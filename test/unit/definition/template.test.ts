import fc from 'fast-check';
import { parseDuration } from '#sonar/definition/duration.ts';
import { nearestName } from '#sonar/definition/nearest-name.ts';
import { parseTemplate } from '#sonar/definition/template.ts';

const seed = 20_010;

describe('templates', () => {
  test('text without a reference stays as it is, and escapes give what they stand for', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const { parts, faults } = parseTemplate(text.replaceAll('${', '$${'));
        expect(faults).toEqual([]);
        expect(parts.map(({ part }) => (part.kind === 'text' ? part.text : '')).join('')).toBe(text);
      }),
      { seed },
    );
  });

  test.each<[string, unknown[]]>([
    ['${item}', [{ kind: 'item', path: [], join: null }]],
    [
      'a${ item.info.name }b',
      [
        { kind: 'text', text: 'a' },
        { kind: 'item', path: ['info', 'name'], join: null },
        { kind: 'text', text: 'b' },
      ],
    ],
    ['${item.template-id}', [{ kind: 'item', path: ['template-id'], join: null }]],
    ['${join(item.port)}', [{ kind: 'item', path: ['port'], join: ',' }]],
    ['${join(item, "}; ")}', [{ kind: 'item', path: [], join: '}; ' }]],
    ["${join(inputs.hosts,' ')}", [{ kind: 'inputs', name: 'hosts', join: ' ' }]],
    [
      '${in.a}${out.b}',
      [
        { kind: 'in', name: 'a' },
        { kind: 'out', name: 'b' },
      ],
    ],
    ['$${item}$', [{ kind: 'text', text: '${item}$' }]],
    ['$$${item}', [{ kind: 'text', text: '$${item}' }]],
  ])('%s', (text, parts) => {
    expect(parseTemplate(text).parts.map(({ part }) => part)).toEqual(parts);
  });

  test.each([
    '${}',
    '${item.}',
    '${item..x}',
    '${items}',
    '${inputs}',
    '${inputs.a.b}',
    '${join()}',
    '${join(in.a)}',
    '${join(item, ,)}',
    '${upper(item)}',
    '${item',
    '${item[0]}',
    '${ITEM}',
  ])('%s is a fault', (text) => {
    expect(parseTemplate(text).faults).toHaveLength(1);
  });
});

test.each<[string, number | null]>([
  ['500ms', 500],
  ['30s', 30_000],
  ['30m', 1_800_000],
  ['1h30m', 5_400_000],
  ['1d', 86_400_000],
  ['1m500ms', 60_500],
  ['', null],
  ['30', null],
  ['1.5h', null],
  ['-1s', null],
  ['1 h', null],
  ['30m1h', null],
  ['1H', null],
  ['ms', null],
  ['400d', null],
  ['0s', 0],
])('the duration %j is %j', (text, expected) => {
  expect(parseDuration(text)).toBe(expected);
});

test('a misspelled name finds the one that was meant', () => {
  expect(nearestName('comand', ['command', 'timeout'])).toBe('command');
  expect(nearestName('tiemout', ['command', 'timeout'])).toBe('timeout');
  expect(nearestName('xyz', ['command', 'timeout'])).toBeNull();
});
