// Water-fill: what is never broken, whatever the fleet and the work, and what fairness means.
import fc from 'fast-check';
import {
  type Capacity,
  capacityOf,
  fill,
  type PlaceableStep,
  turnSize,
  withoutLacking,
} from '#sonar/domain/placement.ts';

const tags = ['a', 'b', 'c'];
const steps = fc.array(
  fc.record({
    scanId: fc.constantFrom('s1', 's2', 's3'),
    step: fc.constantFrom('x', 'y'),
    tags: fc.uniqueArray(fc.constantFrom(...tags, 'unserved'), { minLength: 1 }),
    pending: fc.nat(60),
    concurrencyLeft: fc.oneof(fc.nat(30), fc.constant(Number.POSITIVE_INFINITY)),
    lastTurn: fc.nat(9),
    turnTaken: fc.nat(7),
  }),
  { maxLength: 6 },
);
const distinct = steps.map((all) => [
  ...new Map(all.map((one) => [`${one.scanId}/${one.step}`, one])).values(),
]);
const keyOf = ({ scanId, step }: { scanId: string; step: string }): string => `${scanId}/${step}`;
const capacity: fc.Arbitrary<Capacity> = fc.record({
  byTag: fc
    .uniqueArray(fc.tuple(fc.constantFrom(...tags), fc.nat(40)), { selector: ([tag]) => tag })
    .map((all) => new Map(all)),
  fleet: fc.nat(80),
});
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const seed = { seed: 20_261_130, numRuns: 1_000 };

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
      const starved = fill(all, room).starved.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b)));
      expect(starved).toEqual(expected.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b))));
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
  lastTurn: 0,
  turnTaken: 0,
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

// Fairness in words: as long as all of them have work, no scan is ever given more than a turn beyond another, nor a
// step beyond another of its scan, in whatever portions room comes free; and who comes late waits for one turn of each.
const shapes = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 5 });
const portions = fc.array(fc.nat(40), { minLength: 1, maxLength: 30 });
const stepsOf = (shape: readonly number[]): PlaceableStep[] =>
  shape.flatMap((count, scan) => Array.from({ length: count }, (_, step) => waiting(`s${scan}`, `t${step}`)));

/** Passes one after the other, as rooms come free; each takes up the turns where the one before has left them. */
function passes(all: PlaceableStep[], rooms: readonly number[], bound: 'tag' | 'fleet'): Map<string, number> {
  const given = new Map(all.map((step) => [keyOf(step), 0]));
  let last = Math.max(...all.map((step) => step.lastTurn));
  for (const room of rooms) {
    const capacity: Capacity =
      bound === 'tag'
        ? { byTag: new Map([['a', room]]), fleet: 10_000 }
        : { byTag: new Map([['a', 10_000]]), fleet: room };
    const placement = fill(all, capacity, last);
    last = placement.lastTurn;
    for (const one of placement.allocations) given.set(keyOf(one), (given.get(keyOf(one)) ?? 0) + one.tasks);
    for (const turn of placement.turns)
      Object.assign(all.find((step) => keyOf(step) === keyOf(turn)) ?? {}, turn);
  }
  return given;
}
const spread = (numbers: readonly number[]): number => Math.max(...numbers) - Math.min(...numbers);

test.each(['tag', 'fleet'] as const)(
  'over all passes no scan is more than a turn ahead of another, nor a step of its neighbour: bound by %s',
  (bound) => {
    fc.assert(
      fc.property(shapes, portions, (shape, rooms) => {
        const given = passes(stepsOf(shape), rooms, bound);
        expect(sum([...given.values()])).toBe(sum(rooms));
        const ofScan = shape.map((count, scan) =>
          Array.from({ length: count }, (_, step) => given.get(`s${scan}/t${step}`) ?? 0),
        );
        for (const steps of ofScan) expect(spread(steps)).toBeLessThanOrEqual(turnSize);
        expect(spread(ofScan.map(sum))).toBeLessThanOrEqual(turnSize);
      }),
      { ...seed, numRuns: 500 },
    );
  },
);

test('a scan that comes late waits for no more than a turn of each other, one slot at a time', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.nat(50), (scans, before) => {
      const all = Array.from({ length: scans }, (_, scan) => waiting(`s${scan}`, 'x'));
      const rooms = Array.from({ length: before }, () => 1);
      passes(all, rooms, 'tag');
      const late = { ...waiting('late', 'x'), lastTurn: Math.max(...all.map((step) => step.lastTurn)) };
      const given = passes(
        [...all, late],
        Array.from({ length: scans * turnSize + 1 }, () => 1),
        'tag',
      );
      expect(given.get('late/x')).toBeGreaterThan(0);
    }),
    { ...seed, numRuns: 100 },
  );
});

test('a step that can take one task at a time gets its turns beside one that can take all', () => {
  const one = { ...waiting('s1', 'x'), concurrencyLeft: 1 };
  const given = passes(
    [one, waiting('s2', 'x')],
    Array.from({ length: 40 }, () => 2),
    'tag',
  );
  expect(Object.fromEntries(given)).toEqual({ 's1/x': 40, 's2/x': 40 });
});

test('the step of many tags takes where there is most room, and the rest of its turn elsewhere', () => {
  const both = { ...waiting('s1', 'x'), tags: ['a', 'b'], pending: 8 };
  const { allocations, turns } = fill([both], {
    byTag: new Map([
      ['a', 3],
      ['b', 5],
    ]),
    fleet: 10,
  });
  expect(allocations).toEqual([
    { scanId: 's1', step: 'x', tag: 'b', tasks: 5 },
    { scanId: 's1', step: 'x', tag: 'a', tasks: 3 },
  ]);
  expect(turns).toEqual([{ scanId: 's1', step: 'x', lastTurn: 1, turnTaken: 0 }]);
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

test.each([
  ['nobody lacks it: the step is as it was', [], { tags: ['a', 'b'], concurrencyLeft: 9 }],
  [
    'tags that only lacking workers serve are out, and room is that of the others',
    ['1'],
    { tags: ['b'], concurrencyLeft: 3 },
  ],
  ['every worker of its tags lacks it', ['1', '2'], 'nobody'],
])('workers without the program: %s', (_what, lacking, expected) => {
  const step = { ...waiting('s1', 'x'), tags: ['a', 'b'], concurrencyLeft: 9 };
  const workers = [
    { incarnationId: '1', tags: ['a'], parked: [], slots: 4 },
    { incarnationId: '2', tags: ['b', 'c'], parked: [], slots: 2 },
    { incarnationId: '3', tags: ['c'], parked: [], slots: 8 },
  ];
  const left = withoutLacking(step, 1, workers, new Set(lacking), 2);
  expect(left).toEqual(expected === 'nobody' ? expected : { ...step, ...(expected as object) });
  expect(withoutLacking(step, 1, workers.slice(2), new Set(['3']), 2)).toBe(step);
});

test('a worker that has the program and only a parked tag is no room, and not nobody', () => {
  const step = { ...waiting('s1', 'x'), tags: ['a', 'b'], concurrencyLeft: 9 };
  const workers = [
    { incarnationId: '1', tags: ['a'], parked: [], slots: 4 },
    { incarnationId: '2', tags: [], parked: ['b'], slots: 2 },
  ];
  expect(withoutLacking(step, 0, workers, new Set(['1']), 2)).toEqual({
    ...step,
    tags: [],
    concurrencyLeft: 0,
  });
  expect(withoutLacking(step, 0, workers, new Set(['1', '2']), 2)).toBe('nobody');
  expect(withoutLacking(step, 0, workers, new Set(), 2)).toBe(step);
});
