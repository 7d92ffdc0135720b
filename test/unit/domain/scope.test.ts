import fc from 'fast-check';
import type { Scope } from '#sonar/contracts/definition.ts';
import { parseScope } from '#sonar/domain/scope.ts';
import { formatIpv4, formatIpv6, parseIpv6 } from '#sonar/domain/scope-address.ts';
import { scopeOf, verdict } from './scope-verdict.ts';

const seed = 20_001;

describe('domains', () => {
  const scope = scopeOf(['example.com', 'bücher.example'], ['secret.example.com']);

  test.each([
    ['example.com', 'allowed'],
    ['EXAMPLE.com.', 'allowed'],
    ['a.b.example.com', 'allowed'],
    ['_dmarc.example.com', 'allowed'],
    ['example.com:8443', 'allowed'],
    ['https://www.example.com:8443/path?q=a@b#c', 'allowed'],
    ['http://example.com', 'allowed'],
    ['shop.xn--bcher-kva.example', 'allowed'],
    ['shop.BÜCHER.example', 'allowed'],
    ['secret.example.com', 'denied'],
    ['x.SECRET.example.com.', 'denied'],
    ['http://secret.example.com/', 'denied'],
    ['notexample.com', 'not_allowed'],
    ['example.com.evil.test', 'not_allowed'],
    ['com', 'not_allowed'],
    ['127.0.0.1', 'not_allowed'],
  ])('%s is %s', (target, expected) => {
    expect(verdict(scope, target)).toBe(expected);
  });

  test('every subdomain of what is allowed is allowed, and of what is denied denied', () => {
    const label = fc.stringMatching(/^[a-z0-9_]([a-z0-9_-]{0,10}[a-z0-9_])?$/);
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 5 }), (labels) => {
        expect(verdict(scope, `${labels.join('.')}.other.example.com`)).toBe('allowed');
        expect(verdict(scope, `${labels.join('.')}.secret.example.com`)).toBe('denied');
      }),
      { seed },
    );
  });
});

describe('addresses and CIDRs', () => {
  const scope = scopeOf(
    ['10.0.0.0/25', '10.0.0.128/25', '192.0.2.7', '2001:db8::/32'],
    ['10.0.0.64/30', '2001:db8:dead::/48'],
  );

  test.each([
    ['10.0.0.1', 'allowed'],
    ['10.0.0.200:443', 'allowed'],
    ['192.0.2.7/32', 'allowed'],
    ['http://192.0.2.7:8080/', 'allowed'],
    ['10.0.0.96/27', 'allowed'],
    ['10.0.0.66', 'denied'],
    ['10.0.0.0/24', 'denied'],
    ['0.0.0.0/0', 'denied'],
    ['10.0.1.0/24', 'not_allowed'],
    ['10.0.0.128/24', 'denied'],
    ['192.0.2.6/31', 'not_allowed'],
    ['2001:db8::1', 'allowed'],
    ['2001:0DB8:0:0:0:0:0:1', 'allowed'],
    ['[2001:db8::1]', 'allowed'],
    ['[2001:db8::1]:443', 'allowed'],
    ['https://[2001:db8::1]:8443/x', 'allowed'],
    ['2001:db8:dead::1', 'denied'],
    ['2001:db8::/31', 'denied'],
    ['2001:db9::1', 'not_allowed'],
  ])('%s is %s', (target, expected) => {
    expect(verdict(scope, target)).toBe(expected);
  });

  test('neighbouring allowed networks are one: a CIDR over both lies wholly in them', () => {
    expect(verdict(scopeOf(['10.0.0.0/25', '10.0.0.128/25']), '10.0.0.0/24')).toBe('allowed');
  });

  test('a CIDR is judged as each of its addresses would be', () => {
    const prefix = fc.integer({ min: 24, max: 32 });
    const cidr = fc
      .tuple(fc.integer({ min: 0, max: 255 }), prefix)
      .map(([last, length]) => `198.51.100.${last & (0xff << (32 - length)) & 0xff}/${length}`);
    const addressesOf = (text: string): number[] => {
      const [, last = '', length = ''] = /\.(\d+)\/(\d+)$/.exec(text) ?? [];
      return Array.from({ length: 2 ** (32 - Number(length)) }, (_, index) => Number(last) + index);
    };
    fc.assert(
      fc.property(
        fc.array(cidr, { minLength: 1, maxLength: 4 }),
        fc.array(cidr, { maxLength: 3 }),
        cidr,
        (allow, deny, target) => {
          const inside = (cidrs: string[], address: number): boolean =>
            cidrs.some((text) => addressesOf(text).includes(address));
          const addresses = addressesOf(target);
          const expected = addresses.some((address) => inside(deny, address))
            ? 'denied'
            : addresses.every((address) => inside(allow, address))
              ? 'allowed'
              : 'not_allowed';
          expect(verdict(scopeOf(allow, deny), target)).toBe(expected);
        },
      ),
      { seed, numRuns: 300 },
    );
  });

  test('whatever is denied stays denied, whatever is allowed', () => {
    const v4 = fc.bigInt({ min: 0n, max: 0xffff_ffffn }).map(formatIpv4);
    const v6 = fc.bigInt({ min: 1n << 64n, max: (1n << 128n) - 1n }).map(formatIpv6);
    const domain = fc.stringMatching(/^[a-z]{1,8}\.[a-z]{2,5}$/);
    fc.assert(
      fc.property(
        fc.oneof(v4, v6, domain),
        fc.array(fc.oneof(v4, domain), { maxLength: 5 }),
        (target, others) => {
          expect(verdict(scopeOf(['0.0.0.0/0', '::/0', target, ...others], [target]), target)).toBe('denied');
        },
      ),
      { seed },
    );
  });

  test('IPv6 text and number are one to one', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), (value) => {
        expect(parseIpv6(formatIpv6(value))).toBe(value);
      }),
      { seed },
    );
  });
});

describe('parseScope', () => {
  test('names every entry that cannot be read, with a way out', () => {
    const scope: Scope = {
      allow: [
        'example.com',
        '*.example.com',
        '10.0.0.5/8',
        'http://example.com/',
        'example.com:80',
        '010.0.0.1',
      ],
      deny: ['::ffff:1.2.3.4', '::ffff:102:304', '*'],
    };
    const parsed = parseScope(scope);
    const problems = parsed.ok ? [] : parsed.problems;
    expect(problems.map(({ path }) => path)).toEqual([
      'allow[1]',
      'allow[2]',
      'allow[3]',
      'allow[4]',
      'allow[5]',
      'deny[0]',
      'deny[1]',
      'deny[2]',
    ]);
    expect(problems.map(({ hint }) => hint).slice(0, 2)).toEqual([
      'a domain covers its subdomains: write `example.com`',
      'write `10.0.0.0/8` for the network',
    ]);
  });

  test('a scope that allows nothing is a fault', () => {
    expect(parseScope({ allow: [], deny: ['example.com'] })).toMatchObject({
      ok: false,
      problems: [{ path: 'allow', message: 'the scope allows nothing' }],
    });
  });
});
