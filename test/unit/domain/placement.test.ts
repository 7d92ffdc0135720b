// Water-fill: what is never broken, whatever the fleet and the work, and what fairness means.
import fc from 'fast-check';
import { type Capacity, capacityOf, fill, type PlaceableStep } from '#sonar/domain/placement.ts';

const tags = ['a', 'b', 'c'];
const steps = fc.array(
  fc.record({
    scanId: fc.constantFrom('s1', 's2', 's3'),
    step: fc.constantFrom('x', 'y'),
    tags: fc.uniqueArray(fc.constantFrom(...tags, 'unserved'), { minLength: 1 }),
    pending: fc.nat(60),
    concurrencyLeft: fc.oneof(fc.nat(30), fc.constant(Number.POSITIVE_INFINITY)),
  }),
  { maxLength: 6 },
);
const distinct = steps.map((all) => [
  ...new Map(all.map((one) => [`${one.scanId}/${one.step}`, one])).values(),
]);
const capacity: fc.Arbitrary<Capacity> = fc.record({
  byTag: fc
    .uniqueArray(fc.tuple(fc.constantFrom(...tags), fc.nat(40)), { selector: ([tag]) => tag })
    .map((all) => new Map(all)),
  fleet: fc.nat(80),
});
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const seed = { seed: 20_261_130, numRuns: 2_000 };

test('no budget is ever passed: of a tag, of the fleet, of a step, of what is pending', () => {
  fc.assert(
    fc.property(distinct, capacity, (all, room) => {
      const { allocations } = fill(all, room);
      expect(sum(allocations.map(({ tasks }) => tasks))).toBeLessThanOrEqual(room.fleet);
      for (const [tag, left] of room.byTag)
        expect(
          sum(allocations.filter((one) => one.tag === tag).map(({ tasks }) => tasks)),
        ).toBeLessThanOrEqual(left);
      for (const step of all) {
        const own = allocations.filter((one) => one.scanId === step.scanId && one.step === step.step);
        expect(sum(own.map(({ tasks }) => tasks))).toBeLessThanOrEqual(
          Math.min(step.pending, step.concurrencyLeft),
        );
        for (const { tag, tasks } of own) expect([step.tags.includes(tag), tasks > 0]).toEqual([true, true]);
      }
    }),
    seed,
  );
});

test('no room is left that pending work could take', () => {
  fc.assert(
    fc.property(distinct, capacity, (all, room) => {
      const { allocations } = fill(all, room);
      if (sum(allocations.map(({ tasks }) => tasks)) === room.fleet) return;
      const roomOf = (tag: string): number =>
        (room.byTag.get(tag) ?? 0) -
        sum(allocations.filter((one) => one.tag === tag).map(({ tasks }) => tasks));
      const unfilled = all.filter((step) => {
        const own = allocations.filter((one) => one.scanId === step.scanId && one.step === step.step);
        return sum(own.map(({ tasks }) => tasks)) < Math.min(step.pending, step.concurrencyLeft);
      });
      expect(unfilled.flatMap((step) => step.tags.filter((tag) => roomOf(tag) > 0))).toEqual([]);
    }),
    seed,
  );
});

test('a step is starved when work is pending and no tag of it is served, and only then', () => {
  fc.assert(
    fc.property(distinct, capacity, (all, room) => {
      const expected = all
        .filter((step) => step.pending > 0 && !step.tags.some((tag) => room.byTag.has(tag)))
        .map(({ scanId, step }) => ({ scanId, step }));
      expect(fill(all, room).starved).toEqual(expected);
    }),
    seed,
  );
});

const waiting = (scanId: string, step: string): PlaceableStep => ({
  scanId,
  step,
  tags: ['a'],
  pending: 1_000,
  concurrencyLeft: Number.POSITIVE_INFINITY,
});

test('scans that want the same tag take turns of eight, however many steps each has', () => {
  const all = [waiting('s1', 'x'), waiting('s1', 'y'), waiting('s2', 'x')];
  const { allocations } = fill(all, { byTag: new Map([['a', 32]]), fleet: 1_000 });
  expect(allocations).toEqual([
    { scanId: 's1', step: 'x', tag: 'a', tasks: 8 },
    { scanId: 's2', step: 'x', tag: 'a', tasks: 16 },
    { scanId: 's1', step: 'y', tag: 'a', tasks: 8 },
  ]);
});

test('each tag counts a worker that has it; the fleet counts each worker once', () => {
  const workers = [
    { tags: ['a', 'b'], slots: 4 },
    { tags: ['b'], slots: 2 },
  ];
  const { byTag, fleet } = capacityOf(
    workers,
    {
      byTag: new Map([
        ['a', 3],
        ['b', 20],
      ]),
      total: 5,
    },
    2,
  );
  expect([Object.fromEntries(byTag), fleet]).toEqual([{ a: 5, b: 0 }, 7]);
});
