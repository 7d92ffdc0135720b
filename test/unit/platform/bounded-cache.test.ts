// The cache holds no more than it says, and lets go of what was used longest ago.
import { BoundedCache } from '#sonar/platform/bounded-cache.ts';

const keysIn = (cache: BoundedCache<string, number>, keys: string) =>
  keys
    .split('')
    .filter((key) => cache.get(key) !== undefined)
    .join('');

test('what is set is got, and what is not is undefined', () => {
  const cache = new BoundedCache<string, number>(2);
  cache.set('a', 0);
  expect(cache.get('a')).toBe(0);
  expect(cache.get('b')).toBeUndefined();
});

test('past its bound the oldest entry goes', () => {
  const cache = new BoundedCache<string, number>(2);
  for (const key of 'abc') cache.set(key, 1);
  expect(keysIn(cache, 'abc')).toBe('bc');
});

test('an entry that is got or set again counts as new', () => {
  const cache = new BoundedCache<string, number>(3);
  for (const key of 'abc') cache.set(key, 1);
  cache.get('a');
  cache.set('d', 1);
  expect(keysIn(cache, 'abcd')).toBe('acd');
  const other = new BoundedCache<string, number>(2);
  for (const key of 'aba') other.set(key, 1);
  other.set('c', 1);
  expect(keysIn(other, 'abc')).toBe('ac');
});

test('an entry that is set again has its new value, and takes one place', () => {
  const cache = new BoundedCache<string, number>(2);
  cache.set('a', 1);
  cache.set('b', 1);
  cache.set('b', 2);
  expect([cache.get('a'), cache.get('b')]).toEqual([1, 2]);
});
