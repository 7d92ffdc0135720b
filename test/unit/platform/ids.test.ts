// Ids of one process sort in the order in which they were made: pages, pinned orders and "latest" rest on it.
import { uuidPattern } from '#sonar/contracts/ids.ts';
import { newId } from '#sonar/platform/ids.ts';

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const millisecondsOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);

function expectSorted(ids: readonly string[]): void {
  expect(ids.filter((id) => !uuidV7.test(id) || !uuidPattern.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id, index) => id <= (ids[index - 1] ?? ''))).toEqual([]);
}

test('5,000 ids in a row sort in the order of their making, each a UUIDv7 of its time', () => {
  const before = Date.now();
  const ids = Array.from({ length: 5_000 }, () => newId());
  expectSorted(ids);
  expect(millisecondsOf(ids[0] ?? '')).toBeGreaterThanOrEqual(before);
});

test('more ids within a millisecond than it can count still sort', () => {
  const at = Date.now() + 60_000;
  const ids = Array.from({ length: 10_000 }, () => newId(at));
  expectSorted(ids);
  expect(millisecondsOf(ids[0] ?? '')).toBe(at);
  expect(millisecondsOf(ids.at(-1) ?? '')).toBe(at + 2);
});

test('ids sort also when the clock steps back, and follow it again when it has caught up', () => {
  const at = Date.now() + 120_000;
  const ids = [0, 5, -3_600_000, -1, 4, 5, 6].map((step) => newId(at + step));
  expectSorted(ids);
  expect(ids.map((id) => millisecondsOf(id) - at)).toEqual([0, 5, 5, 5, 5, 5, 6]);
});

test('what follows the counter is random', () => {
  const at = Date.now() + 180_000;
  const tails = Array.from({ length: 1_000 }, () => newId(at).slice(20));
  expect(new Set(tails).size).toBe(1_000);
});
