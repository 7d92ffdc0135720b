// Signed callbacks: what was signed verifies, and nothing else does.
import fc from 'fast-check';
import { deriveCredential, parseMasterKeys, signBody, verifyBody } from '#sonar/platform/signing.ts';

const keys = parseMasterKeys(
  `new:${Buffer.alloc(32, 2).toString('base64')},old:${Buffer.alloc(32, 1).toString('base64')}`,
);
const keyOf = (id: string): Buffer => keys.get(id) ?? Buffer.alloc(0);
const credential = deriveCredential(keyOf('new'), 'attempt', 'a1');
const at = new Date('2026-01-02T03:04:05Z');
const seed = { seed: 20_261_130, numRuns: 300 };

test('any body verifies as it was signed, and no other body, id, credential or time does', () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ minLength: 1 }), (body, more) => {
      const headers = signBody(credential, 'm1', at, body);
      expect(verifyBody(credential, headers, body, at)).toBe('valid');
      expect(verifyBody(credential, headers, body + more, at)).toBe('invalid');
      expect(verifyBody(credential, { ...headers, 'webhook-id': `m1${more}` }, body, at)).toBe('invalid');
      const later = String(Number(headers['webhook-timestamp']) + 1);
      expect(verifyBody(credential, { ...headers, 'webhook-timestamp': later }, body, at)).toBe('invalid');
    }),
    seed,
  );
});

test('each attempt, purpose and master key has a credential of its own', () => {
  const body = '{}';
  const headers = signBody(credential, 'm1', at, body);
  for (const other of [
    deriveCredential(keyOf('new'), 'attempt', 'a2'),
    deriveCredential(keyOf('new'), 'incarnation', 'a1'),
    deriveCredential(keyOf('old'), 'attempt', 'a1'),
  ])
    expect(verifyBody(other, headers, body, at)).toBe('invalid');
  expect(deriveCredential(keyOf('new'), 'attempt', 'a1')).toBe(credential);
});

test('clocks that differ by more than five minutes are skew, either way; headers that lack are invalid', () => {
  const headers = signBody(credential, 'm1', at, 'x');
  const after = (seconds: number): Date => new Date(at.getTime() + seconds * 1_000);
  expect([after(299), after(-299)].map((now) => verifyBody(credential, headers, 'x', now))).toEqual([
    'valid',
    'valid',
  ]);
  expect([after(302), after(-302)].map((now) => verifyBody(credential, headers, 'x', now))).toEqual([
    'skew',
    'skew',
  ]);
  expect(verifyBody(credential, {}, 'x', at)).toBe('invalid');
  expect(verifyBody(credential, { ...headers, 'webhook-timestamp': '1e9' }, 'x', at)).toBe('invalid');
});

test.each([
  ['k', 'key 1 is not'],
  ['k:c2hvcnQ=', 'key 1 is not'],
  [`a:${Buffer.alloc(32).toString('base64')},a:${Buffer.alloc(32).toString('base64')}`, '"a" stands twice'],
])('master keys %j are refused without their value', (text, message) => {
  expect(() => parseMasterKeys(text)).toThrow(message);
});
