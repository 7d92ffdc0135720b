import fc from 'fast-check';
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { type RecordDraft, type RecordType, recordTypes } from '#sonar/contracts/records.ts';
import { canonicalJson } from '#sonar/domain/inventory-fold.ts';
import { maxKeyBytes, recordKey } from '#sonar/domain/records.ts';
import { builtInTypes } from '#sonar/domain/records-identities.ts';
import { fieldAt, pickItem } from '#sonar/domain/records-path.ts';
import { maxStringLength, safeSample } from '#sonar/domain/records-storable.ts';
import { canonicalAddress, parseIpv4 } from '#sonar/domain/scope-address.ts';

const seed = 20_003;
const keyOf = (type: RecordType, fields: Record<string, JsonValue>): string => {
  const keyed = recordKey({ type, fields });
  return keyed.ok ? keyed.key : `refused: ${keyed.reason}`;
};

describe('keys', () => {
  test.each<[RecordType, Record<string, JsonValue>, string]>([
    ['address', { ip: '192.0.2.1' }, '192.0.2.1'],
    ['address', { ip: '2001:0DB8:0:0:0:0:0:1' }, '2001:db8::1'],
    ['address', { ip: '::FFFF:192.0.2.1' }, '192.0.2.1'],
    ['address', { ip: '::ffff:c000:201' }, '192.0.2.1'],
    ['address', { ip: '0:0:1:0:0:0:0:0' }, '0:0:1::'],
    ['service', { address: '192.0.2.1', port: 80 }, '192.0.2.1/tcp/80'],
    ['service', { address: '192.0.2.1', port: '080', protocol: 'TCP' }, '192.0.2.1/tcp/80'],
    ['service', { address: '2001:db8:0::1', port: 53, protocol: 'udp' }, '2001:db8::1/udp/53'],
    ['endpoint', { url: 'HTTP://Example.COM:80' }, 'http://example.com/'],
    [
      'endpoint',
      { url: 'https://bücher.example.:443/a/../b?q=1#top' },
      'https://xn--bcher-kva.example/b?q=1',
    ],
    ['endpoint', { url: 'http://user:secret@192.0.2.1:8080/' }, 'http://192.0.2.1:8080/'],
    ['endpoint', { url: 'https://[2001:0db8::0001]/' }, 'https://[2001:db8::1]/'],
    ['domain', { name: 'WWW.Bücher.Example.' }, 'www.xn--bcher-kva.example'],
    ['domain', { name: ' _dmarc.example.com ' }, '_dmarc.example.com'],
    ['dns', { name: 'Example.COM.', type: 'a', value: '192.0.2.1' }, 'example.com A 192.0.2.1'],
    ['dns', { name: 'example.com', type: 'AAAA', value: '2001:DB8:0::1' }, 'example.com AAAA 2001:db8::1'],
    ['dns', { name: '*.example.com', type: 'CNAME', value: 'A.Test.' }, '*.example.com CNAME a.test'],
    ['dns', { name: 'example.com', type: 'MX', value: '10 Mail.Test.' }, 'example.com MX mail.test'],
    ['dns', { name: 'example.com', type: 'MX', value: '0 .' }, 'example.com MX .'],
    ['dns', { name: 'example.com', type: 'TXT', value: 'v=SPF1 -all. ' }, 'example.com TXT v=SPF1 -all. '],
    ['dns', { name: '192.0.2.1', type: 'PTR', value: 'A.test' }, '1.2.0.192.in-addr.arpa PTR a.test'],
    [
      'dns',
      { name: '2001:db8::1', type: 'PTR', value: 'a.test' },
      '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa PTR a.test',
    ],
    ['dns', { name: 'a.test', type: 'SRV', value: '0 5 5060 Sip.Test.' }, 'a.test SRV 0 5 5060 sip.test'],
    ['certificate', { sha256: `${'AB:'.repeat(31)}AB` }, 'ab'.repeat(32)],
    [
      'technology',
      { parent: 'HTTPS://Example.com', name: 'Apache HTTP Server' },
      'https://example.com/ apache http server',
    ],
    ['technology', { parent: '192.0.2.1/TCP/080', name: 'nginx' }, '192.0.2.1/tcp/80 nginx'],
    [
      'finding',
      { source: 'Nuclei', rule: 'tls-version', target: 'A.Example.TEST:0443', location: '' },
      'nuclei tls-version a.example.test:443',
    ],
    [
      'finding',
      { source: 'x', rule: 'a b', target: '[2001:0db8::1]:443', location: 'http://A.test?q=1#f' },
      'x a%20b [2001:db8::1]:443 http://a.test/?q=1',
    ],
    [
      'finding',
      { source: 'x', rule: 'y', target: 'a.test', location: 'HTTPS://me@A.test:443/b/.%2e/%2E./C d#e' },
      'x y a.test https://a.test/b/.%2e/%2E./C d',
    ],
  ])('%s %j is %s', (type, fields, key) => {
    expect(keyOf(type, fields)).toBe(key);
  });

  test.each<[RecordType, Record<string, JsonValue>, string]>([
    ['address', {}, 'address: `ip` is no address: null'],
    ['address', { ip: '127.1' }, 'address: `ip` is no address: "127.1"'],
    ['service', { address: '192.0.2.1', port: 0 }, 'service: `port` is no port: 0'],
    ['service', { address: '192.0.2.1', port: 1.5 }, 'service: `port` is no port: 1.5'],
    [
      'service',
      { address: '192.0.2.1', port: 1, protocol: 'http' },
      'service: `protocol` is none of tcp, udp, sctp: "http"',
    ],
    [
      'endpoint',
      { url: 'javascript:alert(1)' },
      'endpoint: `url` is no http or https URL: "javascript:alert(1)"',
    ],
    ['endpoint', { url: 7 }, 'endpoint: `url` is no text: 7'],
    ['domain', { name: '192.0.2.1' }, 'domain: `name` is no domain: "192.0.2.1"'],
    ['dns', { name: 'a.test', type: 'A', value: '::1' }, 'dns: `value` is no value of A: "::1"'],
    ['dns', { name: 'a.test', type: 'A B', value: 'x' }, 'dns: `type` is no record type: "A B"'],
    ['dns', { name: 'a b', type: 'A', value: 'x' }, 'dns: `name` is no domain: "a b"'],
    ['dns', { name: 'a.test', type: 'TXT' }, 'dns: `value` is no value of TXT: null'],
    ['certificate', { sha256: 'ab' }, 'certificate: `sha256` is no SHA-256: "ab"'],
    ['technology', { parent: 'a.test' }, 'technology: `name` is no text: null'],
    ['technology', { parent: {}, name: 'x' }, 'technology: `parent` is no text: {}'],
    ['finding', { source: 'x', rule: 'y' }, 'finding: `target` is no text: null'],
  ])('%s %j is refused', (type, fields, reason) => {
    expect(recordKey({ type, fields })).toEqual({ ok: false, reason });
  });

  test('a key beyond 512 bytes is its hash, and differs where the URLs do', () => {
    const long = `http://example.com/${'a'.repeat(maxKeyBytes)}`;
    expect(keyOf('endpoint', { url: long })).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(keyOf('endpoint', { url: `${long}b` })).not.toBe(keyOf('endpoint', { url: long }));
  });

  test('whatever is keyed has the same key when it is keyed again', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.constantFrom(
        'a.TEST.',
        'A.test:080',
        '[::1]:1',
        '::FFFF:192.0.2.1',
        '192.0.2.1/UDP/053',
        '*.a.test',
      ),
      fc.constantFrom('A', 'aaaa', 'mx', 'TXT', '10 Mail.Test.', 'HTTP://A.test:80/../x#y', '\ud800', ' '),
      fc.constantFrom('%20', 'a b', '\u2003', `${'Ab:'.repeat(31)}00`),
      fc.domain(),
      fc.ipV6(),
    );
    const value = fc.oneof({ weight: 9, arbitrary: text }, fc.integer(), fc.constant(null));
    const draft = fc.constantFrom(...recordTypes).chain((type) =>
      fc.record({
        type: fc.constant(type),
        fields: fc.record(
          Object.fromEntries(
            [...builtInTypes[type].required, ...builtInTypes[type].optional].map((field) => [
              field,
              field === 'port' ? fc.integer({ min: -1, max: 70_000 }) : value,
            ]),
          ),
        ),
      }),
    );
    fc.assert(
      fc.property(draft, (stated) => {
        const keyed = recordKey(stated);
        if (!keyed.ok) return;
        expect(keyed.key.isWellFormed()).toBe(true);
        expect(keyed.key).not.toContain('\0');
        expect(recordKey({ type: keyed.type, fields: keyed.fields })).toMatchObject({ key: keyed.key });
      }),
      { seed, numRuns: 3_000 },
    );
  });

  test('parts of a key never run into each other', () => {
    const of = (rule: string, target: string): string => keyOf('finding', { source: 's', rule, target });
    expect(of('a b', 'c')).not.toBe(of('a', 'b c'));
    expect(of('a%20b', 'c')).not.toBe(of('a b', 'c'));
  });

  test('a type that is declared elsewhere is keyed by its own rule; an unknown one is refused', () => {
    const types = {
      bucket: {
        required: ['name'],
        optional: [],
        identify: ({ name = null }: Record<string, JsonValue>) => ({
          key: JSON.stringify(name),
          fields: { name },
        }),
      },
    };
    expect(recordKey({ type: 'bucket', fields: { name: 'b', size: 1 } }, types)).toEqual({
      ok: true,
      type: 'bucket',
      key: '"b"',
      fields: { name: 'b', size: 1 },
      sets: {},
    });
    expect(recordKey({ type: 'toString', fields: {} }, types)).toEqual({
      ok: false,
      reason: 'toString: there is no such record type',
    });
  });

  test('an endpoint that is keyed again has the same key', () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
        const keyed = recordKey({ type: 'endpoint', fields: { url } });
        const again = keyed.ok ? recordKey({ type: 'endpoint', fields: keyed.fields }) : keyed;
        expect(again).toMatchObject({ ok: true, key: keyed.ok ? keyed.key : '' });
      }),
      { seed },
    );
  });
});

describe('fields', () => {
  const fieldsOf = (fields: Record<string, JsonValue>): Record<string, JsonValue> => {
    const keyed = recordKey({ type: 'address', fields: { ip: '192.0.2.1', ...fields } });
    if (!keyed.ok) throw new Error(keyed.reason);
    return keyed.fields;
  };

  test('hostile characters are replaced, long values cut and marked, nulls left out', () => {
    const fields = fieldsOf({
      title: 'nul \0 here',
      'ke\0y': { deep: ['\ud800'] },
      gone: null,
      long: 'x'.repeat(maxStringLength + 1),
      infinite: Number.POSITIVE_INFINITY,
    });
    expect(fields).toMatchObject({
      ip: '192.0.2.1',
      title: 'nul \uFFFD here',
      'ke\uFFFDy': { deep: ['\uFFFD'] },
    });
    expect(fields).not.toHaveProperty('gone');
    expect(fields).not.toHaveProperty('infinite');
    expect(fields.long).toHaveLength(maxStringLength);
    expect(fields.long).toMatch(/x…\[cut\]$/);
  });

  test('field count and depth are bounded, and `__proto__` is data', () => {
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f${index}`, index]));
    expect(Object.keys(fieldsOf(many))).toHaveLength(64);
    const nested = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`) as JsonValue;
    expect(JSON.stringify(fieldsOf({ nested }))).toContain('nested too deeply');
    const polluting = fieldsOf(JSON.parse('{"__proto__": {"polluted": true}}') as Record<string, JsonValue>);
    expect(Object.keys(polluting)).toContain('__proto__');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('whatever a row holds, the record can be stored as jsonb', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom('\0', '\ud800', '\udc00\ud800'),
    );
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        text,
        fc.double(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value')),
        fc.dictionary(text, tie('value')),
      ),
    })).value;
    fc.assert(
      fc.property(fc.dictionary(text, value), (fields) => {
        const json = canonicalJson(fieldsOf(fields as Record<string, JsonValue>));
        expect(json.isWellFormed()).toBe(true);
        expect(json).not.toMatch(/\\u0000|\\ud[89a-f]/i);
        expect(JSON.parse(json)).toBeDefined();
      }),
      { seed },
    );
  });

  test('sets are storable too', () => {
    const draft: RecordDraft = {
      type: 'address',
      fields: { ip: '192.0.2.1' },
      sets: { hostnames: ['a\0b'] },
    };
    expect(recordKey(draft)).toMatchObject({ sets: { hostnames: ['a\uFFFDb'] } });
  });
});

test('an IPv4 text is its own canonical one exactly where it parses', () => {
  const part = fc.oneof(
    fc.integer({ min: 0, max: 300 }).map(String),
    fc.constantFrom('00', '01', '', '1e1', ' 1', '٣'),
  );
  fc.assert(
    fc.property(fc.array(part, { minLength: 3, maxLength: 5 }), (parts) => {
      const text = parts.join('.');
      expect(canonicalAddress(text)).toBe(parseIpv4(text) === null ? null : text);
    }),
    { seed, numRuns: 2_000 },
  );
});

test('paths reach own fields and elements only', () => {
  const row = { 'a.b': 1, a: { b: 2, c: [{ d: 3 }] }, host: '', none: null };
  expect(fieldAt(row, 'a.b')).toBe(1);
  expect(fieldAt(row, 'a.c.0.d')).toBe(3);
  expect(fieldAt(row, 'a.c.length')).toBeUndefined();
  expect(fieldAt(row, 'a.constructor')).toBeUndefined();
  expect(fieldAt(row, '__proto__.x')).toBeUndefined();
  expect(pickItem(row, null)).toBe(row);
  expect(['host', 'none', 'missing'].map((pick) => pickItem(row, pick))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('a sample is short and safe to print', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => {
      const sample = safeSample(text);
      expect(sample.length).toBeLessThanOrEqual(200);
      expect(sample).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    }),
    { seed },
  );
});
