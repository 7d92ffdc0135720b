// What items may become: networks, groups, lines and arguments, and nothing else.
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import { parseTemplate } from '#sonar/definition/template.ts';
import { DigestSet } from '#sonar/domain/digest-set.ts';
import { GroupFold } from '#sonar/domain/group-fold.ts';
import { lineOf } from '#sonar/domain/list-line.ts';
import { renderCommand } from '#sonar/domain/render.ts';
import { formatIpv4, parseCidr } from '#sonar/domain/scope-address.ts';
import { splitNetwork } from '#sonar/domain/split-network.ts';
import { stepWith } from '../../fixtures/step-with.ts';

const seed = 20_031;
const piecesOf = (text: string, prefix: number): string[] => {
  const split = splitNetwork(text, prefix);
  return split.ok ? [...split.pieces] : [split.reason];
};

describe('split', () => {
  test.each<[string, number, string[]]>([
    ['10.0.0.0/23', 24, ['10.0.0.0/24', '10.0.1.0/24']],
    ['10.0.0.77/23', 24, ['10.0.0.0/24', '10.0.1.0/24']],
    ['10.0.0.0/24', 24, ['10.0.0.0/24']],
    ['10.0.0.0/30', 24, ['10.0.0.0/30']],
    ['10.0.0.1', 24, ['10.0.0.1']],
    ['10.0.0.0/30', 32, ['10.0.0.0/32', '10.0.0.1/32', '10.0.0.2/32', '10.0.0.3/32']],
    ['10.0.0.0/30', 64, ['10.0.0.0/30']],
    ['2001:db8::/31', 32, ['2001:db8::/32', '2001:db9::/32']],
    ['2001:db8::/120', 24, ['2001:db8::/120']],
    ['host.example', 24, ['host.example']],
    ['10.0.0.0/33', 24, ['10.0.0.0/33']],
    ['0.0.0.0/0', 25, ['0.0.0.0/0 would be 33554432 networks of /25, more than 16777216']],
  ])('%s into /%i', (text, prefix, pieces) => {
    expect(piecesOf(text, prefix)).toEqual(pieces);
  });

  test('covers every address of the network once, and no other', () => {
    const network = fc.tuple(
      fc.nat({ max: 2 ** 32 - 1 }),
      fc.integer({ min: 8, max: 32 }),
      fc.integer({ min: 0, max: 10 }),
    );
    fc.assert(
      fc.property(network, ([address, length, more]) => {
        const text = `${formatIpv4(BigInt(address))}/${length}`;
        const whole = parseCidr(text)!;
        const pieces = piecesOf(text, Math.min(32, length + more)).map((piece) => parseCidr(piece)!);
        expect(pieces[0]?.first).toBe(whole.first);
        expect(pieces.at(-1)?.last).toBe(whole.last);
        const gaps = pieces.slice(1).filter(({ first }, index) => first !== (pieces[index]?.last ?? 0n) + 1n);
        expect(gaps).toEqual([]);
      }),
      { seed, numRuns: 200 },
    );
  });
});

const hostileText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    'a\nb',
    'a\rb',
    'a\u2028b',
    'a\u2029b',
    'a\u0085b',
    '\0',
    '-oX',
    'a,b',
    ' ',
    '\ud800',
    'a\vb',
    'a\fb',
  ),
);
const hostileValue: fc.Arbitrary<JsonValue> = fc.oneof(
  hostileText,
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.array(hostileText, { maxLength: 3 }),
  fc.dictionary(fc.string(), hostileText, { maxKeys: 3 }),
);

test('a value in a file is one line there, whatever it holds', () => {
  fc.assert(
    fc.property(fc.constantFrom('lines' as const, 'jsonl' as const), hostileValue, (form, value) => {
      const written = lineOf(form, value);
      if (!written.ok) return;
      const back: unknown = form === 'jsonl' ? JSON.parse(written.line) : written.line;
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      expect(`${written.line}\n`.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/)).toHaveLength(2);
      expect(back).toEqual(form === 'jsonl' ? JSON.parse(JSON.stringify(value)) : text);
    }),
    { seed, numRuns: 2_000 },
  );
});

describe('no item of a group', () => {
  const rows = fc.array(fc.record({ ip: fc.constant('10.0.0.1'), port: hostileValue, name: hostileValue }), {
    minLength: 1,
    maxLength: 5,
  });
  const command = fc.array(
    fc.constantFrom(
      '${item.ip}',
      '${join(item.port)}',
      '-p${join(item.name, ";")}',
      '-p',
      '${join(item.port, "")}',
    ),
    { minLength: 1, maxLength: 5 },
  );

  test('becomes an option, a second argument or a second element', () => {
    fc.assert(
      fc.property(rows, command, (group, args) => {
        const fold = new GroupFold('ip', '10.0.0.1');
        for (const row of group) fold.add(row);
        const step = stepWith({
          command: ['tool', ...args].map((text) => parseTemplate(text).parts.map(({ part }) => part)),
        });
        const result = renderCommand(step, { item: fold.item, inputs: {} });
        if (!result.ok) return;
        expect(result.command).toHaveLength(args.length + 1);
        for (const [index, written] of args.entries()) {
          const text = (result.command[index + 1] ?? [])
            .map((part) => (part.kind === 'text' ? part.text : '/'))
            .join('');
          expect(text.startsWith('-')).toBe(written.startsWith('-'));
          expect(text).not.toMatch(/[\0\n\r\u2028]/);
          const separator = /join\(item\.(\w+)(?:, "(.*)")?\)/.exec(written);
          if (separator === null || separator[2] === '') continue;
          const list = fold.item[separator[1] ?? ''];
          const elements = text.replace(/^-p/, '').split(separator[2] ?? ',');
          expect(elements).toEqual((Array.isArray(list) ? list : [list]).map(String));
        }
      }),
      { seed, numRuns: 2_000 },
    );
  });
});

test('a group holds the distinct values of each other field, in their order', () => {
  const fold = new GroupFold('ip', 'x');
  for (const row of [
    { ip: 'x', port: 2, list: [1] },
    { ip: 'x', port: 1, list: [1], late: '' },
    { ip: 'x', port: 2, late: 'v', none: null },
    JSON.parse('{"ip": "x", "__proto__": 7}') as Row,
  ] as Row[])
    fold.add(row);
  expect(JSON.stringify(fold.item)).toBe('{"ip":"x","port":[2,1],"list":[[1]],"late":["v"],"__proto__":[7]}');
});

test('a set of digests knows what it has seen, also when it has grown', () => {
  const set = new DigestSet();
  const digest = (index: number) => createHash('sha256').update(String(index)).digest();
  for (let index = 0; index < 20_000; index += 1) expect(set.add(digest(index))).toBe(true);
  for (let index = 0; index < 20_000; index += 1) expect(set.add(digest(index))).toBe(false);
  expect(set.add(digest(20_000))).toBe(true);
});
