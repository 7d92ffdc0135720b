import fc from 'fast-check';
import { normalizeDomain } from '#sonar/domain/scope-host.ts';
import { scopeOf, verdict } from './scope-verdict.ts';

const seed = 20_011;

describe('what cannot be read as one host', () => {
  const everything = scopeOf(['0.0.0.0/0', '::/0', 'example.com', 'evil.test']);

  test.each([
    '',
    ' ',
    'example.com ',
    'exa mple.com',
    'example.com\n',
    'example.com\0',
    'a.example.com;id',
    '$(id).example.com',
    '`id`',
    '"quoted name"',
    '-oN',
    '--script=x',
    '*.example.com',
    '@example.com',
    // IPv4 that tools read differently
    '0177.0.0.1',
    '0x7f.0.0.1',
    '0x7f000001',
    '2130706433',
    '127.1',
    '127.0.0.1.',
    '127.000.000.001',
    '1.2.3.4.5',
    '256.0.0.1',
    '１２７.0.0.1',
    'example.com.0x7f',
    // nmap's ranges
    '10.0.0.1-20',
    '10.0.0.1,2',
    'example.com/24',
    // IPv4 in IPv6's clothes, zones
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '[::ffff:7f00:1]:80',
    '::ffff:0:0/96',
    '::/0',
    'fe80::1%eth0',
    '[::1',
    '::1]',
    '[::1]x',
    '[127.0.0.1]',
    // CIDRs
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0/8',
    // ports
    'example.com:',
    'example.com:0',
    'example.com:65536',
    'example.com:80:80',
    // URLs in which parsers see different hosts
    'http://example.com@evil.test/',
    'http://example.com:80@evil.test/',
    'http://example.com?@evil.test/',
    'http://example.com#@evil.test/',
    'http://example.com\\@evil.test/',
    'http:\\\\example.com/',
    'http:/example.com/',
    'http:///example.com/',
    'http://',
    '://example.com/',
    'http://exam%70le.com/',
    'http://127.1/',
    'http://[::ffff:127.0.0.1]/',
    'http://example.com:99999/',
    'http://exam\tple.com/',
    'http://example.com,evil.test/',
    'example.com/path',
    'a..example.com',
    '.example.com',
    `${'a'.repeat(64)}.example.com`,
    `${'a.'.repeat(130)}example.com`,
    'exa\ud800mple.com',
  ])('%j is refused', (target) => {
    expect(verdict(everything, target)).toBe('unparseable');
  });

  test('no text makes the check throw, and what is allowed has no blank, control character or leading dash', () => {
    const piece = fc.constantFrom(
      'example.com',
      '10.0.0.1',
      '/',
      ':',
      '@',
      '\\',
      '-',
      '[',
      ']',
      '::1',
      '%',
      '?',
      '#',
      'http://',
      ' ',
      '\0',
      '8',
      '.',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('')),
        ),
        (target) => {
          if (verdict(everything, target) !== 'allowed') return;
          expect(target).toMatch(/^[^-\s\\][^\s\\]*$/);
        },
      ),
      { seed, numRuns: 2_000 },
    );
  });

  test('a domain has one normal form', () => {
    fc.assert(
      fc.property(fc.domain(), (domain) => {
        const normal = normalizeDomain(domain);
        expect(normal).not.toBeNull();
        expect(normalizeDomain(`${domain.toUpperCase()}.`)).toBe(normal);
        expect(normalizeDomain(normal ?? '')).toBe(normal);
      }),
      { seed },
    );
  });
});
