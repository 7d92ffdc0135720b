import fc from 'fast-check';
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { recordKey } from '#sonar/domain/records.ts';
import { knownTypes } from '#sonar/domain/records-declared.ts';

const types = knownTypes({
  login: { key: ['host', 'form', 'port'], normalize: { host: 'host', form: 'lower' } },
  page: { key: ['url'], normalize: { url: 'url' } },
  odd: { key: ['a', 'b'], normalize: {} },
});
const keyOf = (type: string, fields: Record<string, JsonValue>): string => {
  const keyed = recordKey({ type, fields }, types);
  return keyed.ok ? keyed.key : keyed.reason;
};

test.each<[string, Record<string, JsonValue>, string]>([
  ['login', { host: 'WWW.Example.COM.', form: ' /Login ', port: 8 }, 'www.example.com /login 8'],
  ['login', { host: '[::0001]', form: 'a b', port: '8' }, '::1 a%20b 8'],
  ['login', { host: 'a_b c', form: 'x', port: 8 }, 'login: `host` is no host: "a_b c"'],
  ['login', { host: 'a.b', form: '', port: 8 }, 'login: `form` is no text, number or flag: ""'],
  ['login', { host: 'a.b', form: 'x' }, 'login: `port` is no text, number or flag: null'],
  ['login', { host: 'a.b', form: ['x'], port: 1 }, 'login: `form` is no text, number or flag: ["x"]'],
  ['page', { url: 'HTTP://A.example:80/x#y' }, 'http://a.example/x'],
  ['odd', { a: true, b: '__proto__' }, 'true __proto__'],
  ['toString', {}, 'toString: there is no such record type'],
])('the key of %s %j is %s', (type, fields, key) => {
  expect(keyOf(type, fields)).toBe(key);
});

test("Sonar's own types stay what they are, whatever is declared", () => {
  const hostile = knownTypes({ domain: { key: ['x'], normalize: {} } });
  expect(recordKey({ type: 'domain', fields: { name: 'A.example.' } }, hostile)).toMatchObject({
    key: 'a.example',
  });
});

test('keys of different fields differ, and the stored fields give the same key again', () => {
  const value = fc
    .oneof(fc.string({ minLength: 1 }), fc.constantFrom('a b', 'a%20b', 'a', 'b c'))
    .filter((text) => text.trim() !== '');
  const keyedOf = (fields: Record<string, JsonValue>) => {
    const keyed = recordKey({ type: 'odd', fields }, types);
    return keyed.ok ? keyed : { key: keyed.reason, fields: {} };
  };
  fc.assert(
    fc.property(value, value, value, value, (a, b, c, d) => {
      const first = keyedOf({ a, b });
      const same = a.trim() === c.trim() && b.trim() === d.trim();
      expect(first.key === keyedOf({ a: c, b: d }).key).toBe(same);
      expect(keyedOf(first.fields).key).toBe(first.key);
    }),
    { seed: 20_263 },
  );
});
