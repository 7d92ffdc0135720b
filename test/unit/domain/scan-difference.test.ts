// What may be said of two scans: presence always, absence only where the later one looked to the end.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import type { RecordState } from '#sonar/domain/inventory-fold.ts';
import { type Coverage, differenceOf, type Sighting } from '#sonar/domain/scan-difference.ts';
import { incompleteSteps, type StepFacts } from '#sonar/domain/step-coverage.ts';

const seen = (
  fields: Record<string, JsonValue>,
  sets: Record<string, string[]> = {},
  steps = ['probe'],
): Sighting => {
  const state: RecordState = {
    fields: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { value, by: 'k' }])),
    sets,
    firstSeenAt: '2026-01-01T00:00:00.000Z',
    lastSeenAt: '2026-01-01T00:00:00.000Z',
    partial: false,
  };
  return { state, steps };
};
const whole: Coverage = { whole: null, steps: new Map() };
const broken: Coverage = { whole: null, steps: new Map([['probe', '`probe` has 1 failed task(s)']]) };

test('presence is a fact, whatever failed', () => {
  for (const coverage of [whole, broken]) {
    expect(differenceOf(undefined, seen({}), coverage)).toEqual({ change: 'added' });
    expect(differenceOf(seen({ a: 1 }), seen({ a: 1 }), coverage)).toBeNull();
    expect(differenceOf(seen({ a: 1 }), seen({ a: 2, b: 3 }), coverage)).toEqual({
      change: 'changed',
      fields: [
        { name: 'a', before: 1, after: 2 },
        { name: 'b', before: null, after: 3 },
      ],
    });
  }
});

test('a record is gone only where every step that showed it was wholly completed', () => {
  expect(differenceOf(seen({}), undefined, whole)).toEqual({ change: 'gone' });
  expect(differenceOf(seen({}), undefined, broken)).toEqual({
    change: 'unknown',
    fields: [],
    reason: '`probe` has 1 failed task(s)',
  });
  expect(differenceOf(seen({}, {}, ['other']), undefined, broken)).toEqual({ change: 'gone' });
  expect(differenceOf(seen({}, {}, ['other', 'probe']), undefined, broken)).toMatchObject({
    change: 'unknown',
  });
  expect(differenceOf(seen({}), undefined, { ...whole, whole: 'other inputs' })).toMatchObject({
    change: 'unknown',
    reason: 'other inputs',
  });
});

test('a field or a value of a set that is not seen any more is judged as a record is', () => {
  const before = seen({ a: 1, b: 2 }, { names: ['x', 'y'] });
  const after = seen({ a: 1 }, { names: ['x'] });
  const lost = [
    { name: 'b', before: 2, after: null },
    { name: 'names', before: ['x', 'y'], after: ['x'] },
  ];
  expect(differenceOf(before, after, whole)).toEqual({ change: 'changed', fields: lost });
  expect(differenceOf(before, after, broken)).toEqual({
    change: 'unknown',
    fields: lost,
    reason: '`probe` has 1 failed task(s)',
  });
  expect(differenceOf(before, seen({ a: 9 }, { names: ['z'] }), broken)).toEqual({
    change: 'changed',
    fields: [
      { name: 'a', before: 1, after: 9 },
      { name: 'names', before: ['x', 'y'], after: ['z'] },
    ],
  });
});

const step = (more: Partial<StepFacts> = {}): StepFacts => ({
  state: 'settled',
  needs: [],
  tasks: new Map([['Completed', 3]]),
  removed: false,
  badRecords: false,
  ...more,
});

test.each<[string, Partial<StepFacts>, string | undefined]>([
  ['settled and all completed', {}, undefined],
  ['without tasks', { tasks: new Map() }, undefined],
  ['with a failed task', { tasks: new Map([['Failed', 2]]) }, 'has 2 failed task(s)'],
  ['with a cancelled task', { tasks: new Map([['Cancelled', 1]]) }, 'has 1 cancelled task(s)'],
  ['open', { state: 'open' }, 'has not come to its end'],
  ['blocked', { state: 'blocked' }, 'was blocked'],
  ['removed', { removed: true }, 'was removed from the definition'],
  ['with bad records', { badRecords: true }, 'printed records that could not be read'],
])('a step that is %s', (_what, more, reason) => {
  expect(incompleteSteps(new Map([['only', step(more)]])).get('only')).toBe(reason);
});

test('what a step needs is a part of it, however far up, and steps that need each other end', () => {
  const steps = new Map([
    ['a', step({ tasks: new Map([['Failed', 1]]) })],
    ['b', step({ needs: ['a'] })],
    ['c', step({ needs: ['b'] })],
    ['d', step()],
    ['e', step({ needs: ['f'] })],
    ['f', step({ needs: ['e'] })],
  ]);
  expect(incompleteSteps(steps)).toEqual(
    new Map([
      ['a', 'has 1 failed task(s)'],
      ['b', 'needs `a`, which has 1 failed task(s)'],
      ['c', 'needs `b`, which needs `a`, which has 1 failed task(s)'],
    ]),
  );
});
