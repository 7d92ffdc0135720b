// What is lost and what is only slow: properties of the rules, whatever the fleet.
import fc from 'fast-check';
import {
  type DispatchedAttempt,
  type FleetWorker,
  fleetLoss,
  intakeGapMs,
  intakeIsOpen,
  isLostForGood,
  recoveryRule,
  staleTags,
} from '#sonar/domain/staleness.ts';

const bounds = { aliveWithinMs: 35_000, intakeGapMs: intakeGapMs(35_000, 10_000), staleAfterMs: 600_000 };
const hold = { workers: 10, windowMs: 60_000, holdMs: 600_000 };
const seed = { seed: 20_261_130, numRuns: 2_000 };

const age = fc.integer({ min: 0, max: 2_000_000 });
const worker: fc.Arbitrary<FleetWorker> = fc.record({
  tags: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }),
  draining: fc.boolean(),
  freePulses: fc.nat(2),
  silentMs: fc.oneof(fc.nat(40_000), age),
  registeredMs: age,
});
const attempt: fc.Arbitrary<DispatchedAttempt> = fc.record({
  status: fc.constantFrom('Published', 'Running'),
  tag: fc.constantFrom('a', 'b', 'c'),
  confirmedMs: fc.option(age),
  startedMs: fc.option(age),
  omittedPulses: fc.nat(2),
  holder: fc.option(fc.record({ replacedMs: fc.option(age), silentMs: age })),
});

const silent = (count: number, silentMs: number, registeredMs = 3_600_000): FleetWorker[] =>
  Array.from({ length: count }, () => ({
    tags: ['a'],
    draining: false,
    freePulses: 0,
    silentMs,
    registeredMs,
  }));

test('a command on a worker that lives, lists it and was not replaced is never taken back', () => {
  fc.assert(
    fc.property(attempt, fc.boolean(), fc.nat(35_000), (given, absenceCounts, silentMs) => {
      const held: DispatchedAttempt = {
        ...given,
        status: 'Running',
        omittedPulses: Math.min(given.omittedPulses, 1),
        holder: { replacedMs: null, silentMs },
      };
      expect(recoveryRule(held, { staleTags: new Map(), absenceCounts }, bounds)).toBeUndefined();
    }),
    seed,
  );
});

test('while absence does not count, nothing is taken back for silence alone', () => {
  fc.assert(
    fc.property(attempt, fc.array(worker), (given, fleet) => {
      const view = { staleTags: staleTags(['a', 'b', 'c'], fleet, false, bounds), absenceCounts: false };
      const rule = recoveryRule(given, view, bounds);
      expect(rule).not.toBe('no_worker');
      expect(rule === 'worker_absent' && given.holder !== null).toBe(false);
    }),
    seed,
  );
});

test('no message is taken back before its time, counted from the confirm', () => {
  fc.assert(
    fc.property(attempt, fc.array(worker), fc.boolean(), (given, fleet, absenceCounts) => {
      const young = {
        ...given,
        status: 'Published' as const,
        confirmedMs: Math.min(given.confirmedMs ?? 0, 599_999),
      };
      const view = { staleTags: staleTags(['a', 'b', 'c'], fleet, absenceCounts, bounds), absenceCounts };
      expect(recoveryRule(young, view, bounds)).toBeUndefined();
      expect(recoveryRule({ ...young, confirmedMs: null }, view, bounds)).toBeUndefined();
    }),
    seed,
  );
});

test('a tag is stale only by a live worker with free slots, or for want of any live one', () => {
  fc.assert(
    fc.property(fc.array(worker), fc.boolean(), (fleet, absenceCounts) => {
      for (const [tag, rule] of staleTags(['a', 'b', 'c'], fleet, absenceCounts, bounds)) {
        const alive = fleet.filter((one) => one.tags.includes(tag) && one.silentMs <= bounds.aliveWithinMs);
        expect(rule).toBe(alive.length === 0 ? 'no_worker' : 'not_started');
        expect(alive.length === 0 ? absenceCounts : alive.some((one) => one.freePulses === 2)).toBe(true);
      }
    }),
    seed,
  );
});

test('intake is open after the age floor without a gap, and shut 15 s after the last pulse', () => {
  expect(intakeIsOpen({ openMs: 600_000, silentMs: 15_000 }, bounds)).toBe(true);
  expect(intakeIsOpen({ openMs: 599_999, silentMs: 0 }, bounds)).toBe(false);
  expect(intakeIsOpen({ openMs: 3_600_000, silentMs: 15_001 }, bounds)).toBe(false);
});

describe('a vanished fleet', () => {
  test.each([
    [9, 9, undefined],
    [10, 6, 6],
    [10, 5, undefined],
    [11, 6, 6],
    [100, 51, 51],
    [100, 50, undefined],
  ])('of %d workers %d fell silent', (all, lost, held) => {
    expect(fleetLoss([...silent(lost, 40_000), ...silent(all - lost, 0)], bounds, hold)?.lost).toBe(held);
  });

  test('ends its hold after 10 min', () => {
    const fleet = (silentMs: number) => [...silent(20, silentMs), ...silent(3, 0)];
    expect(fleetLoss(fleet(35_001), bounds, hold)).toEqual({ lost: 20, of: 23, endsInMs: 599_999 });
    expect(fleetLoss(fleet(634_999), bounds, hold)?.endsInMs).toBe(1);
    expect(fleetLoss(fleet(635_000), bounds, hold)).toBeUndefined();
  });

  test('is one that vanished within a minute: workers that fell silent one after the other are not', () => {
    const apart = (ms: number) =>
      Array.from({ length: 12 }, (_, index) => silent(1, 36_000 + index * ms)).flat();
    expect(fleetLoss([...apart(5_000), ...silent(8, 0)], bounds, hold)).toMatchObject({ lost: 12, of: 20 });
    expect(fleetLoss([...apart(20_000), ...silent(8, 0)], bounds, hold)).toBeUndefined();
  });

  test('counts who was there: neither drained workers nor those that came later', () => {
    const drained = silent(20, 40_000).map((one) => ({ ...one, draining: true }));
    expect(fleetLoss([...drained, ...silent(3, 0)], bounds, hold)).toBeUndefined();
    expect(fleetLoss([...silent(12, 100_000), ...silent(50, 0, 30_000)], bounds, hold)).toMatchObject({
      lost: 12,
      of: 12,
    });
  });

  test('is never seen in a fleet in which no worker is silent, and never lasts longer than the hold', () => {
    fc.assert(
      fc.property(fc.array(worker, { maxLength: 40 }), (fleet) => {
        const loss = fleetLoss(fleet, bounds, hold);
        expect(
          fleetLoss(
            fleet.map((one) => ({ ...one, silentMs: 0 })),
            bounds,
            hold,
          ),
        ).toBeUndefined();
        expect(loss === undefined || (loss.endsInMs > 0 && loss.endsInMs <= hold.holdMs)).toBe(true);
        expect(loss === undefined || (loss.of >= hold.workers && loss.lost * 2 > loss.of)).toBe(true);
      }),
      seed,
    );
  });
});

test('a command that was lost three times is not tried again; a message is', () => {
  expect([2, 3].map((recoveries) => isLostForGood({ status: 'Running', recoveries }, 3))).toEqual([
    false,
    true,
  ]);
  expect(isLostForGood({ status: 'Published', recoveries: 9 }, 3)).toBe(false);
});
