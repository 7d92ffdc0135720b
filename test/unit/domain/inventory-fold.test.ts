import fc from 'fast-check';
import {
  canonicalJson,
  maxSetValues,
  mergeObservation,
  type Observation,
  orderKeyOf,
  partOf,
  plainFields,
  type RecordState,
} from '#sonar/domain/inventory-fold.ts';

const seed = 20_002;
const taskId = '01890000-0000-7000-8000-000000000001';

const observation: fc.Arbitrary<Observation> = fc.record({
  orderKey: fc.integer({ min: 0, max: 5 }).map((sequence) => orderKeyOf(sequence, taskId, 'xml', 0, 0, 0)),
  observedAt: fc.integer({ min: 0, max: 9 }).map((second) => `2026-01-01T00:00:0${second}.000Z`),
  fields: fc.dictionary(
    fc.constantFrom('a', 'b', 'c', '__proto__', 'toString'),
    fc.jsonValue() as fc.Arbitrary<never>,
    {
      noNullPrototype: true,
    },
  ),
  sets: fc.dictionary(
    fc.constantFrom('names', '__proto__'),
    fc.array(fc.string({ maxLength: 3 }), { maxLength: 90 }),
    {
      noNullPrototype: true,
    },
  ),
  partial: fc.boolean(),
});

const fold = (observations: readonly Observation[]): RecordState | null =>
  observations.reduce<RecordState | null>(mergeObservation, null);

const bytesOf = (observations: readonly Observation[]): string => canonicalJson(fold(observations));

test('any order and any repetition of the observations give the same bytes', () => {
  const shuffled = fc
    .array(observation, { minLength: 1, maxLength: 12 })
    .chain((all) =>
      fc.tuple(
        fc.constant(all),
        fc.shuffledSubarray(all, { minLength: all.length }),
        fc.array(fc.constantFrom(...all), { maxLength: 8 }),
      ),
    );
  fc.assert(
    fc.property(shuffled, ([all, order, repeated]) => {
      expect(bytesOf([...order, ...repeated])).toBe(bytesOf(all));
    }),
    { seed },
  );
});

test('a state that went through JSON goes on as if it had not', () => {
  fc.assert(
    fc.property(fc.array(observation, { minLength: 1 }), observation, (before, next) => {
      const state = fold(before);
      const stored = JSON.parse(JSON.stringify(state)) as RecordState;
      expect(canonicalJson(mergeObservation(stored, next))).toBe(
        canonicalJson(mergeObservation(state, next)),
      );
    }),
    { seed },
  );
});

const at = (sequence: number, row: number, fields: Observation['fields'], partial = false): Observation => ({
  orderKey: orderKeyOf(sequence, taskId, 'xml', 0, row, 0),
  observedAt: `2026-01-0${sequence}T00:00:00.000Z`,
  fields,
  sets: {},
  partial,
});

test('the later row wins field by field, and a null leaves what is known', () => {
  const state = fold([
    at(1, 1, { version: '2.0' }),
    at(1, 0, { version: '1.0', product: 'x' }),
    at(2, 0, { product: null }),
  ]);
  expect(state && plainFields(state)).toEqual({ version: '2.0', product: 'x' });
});

test('first and last seen are the ends of what was observed; one whole observation lifts the mark', () => {
  const partial = fold([at(3, 0, {}, true), at(2, 0, {}, true)]);
  expect(partial).toMatchObject({
    firstSeenAt: '2026-01-02T00:00:00.000Z',
    lastSeenAt: '2026-01-03T00:00:00.000Z',
    partial: true,
  });
  expect(mergeObservation(partial, at(1, 0, {}))).toMatchObject({
    firstSeenAt: '2026-01-01T00:00:00.000Z',
    partial: false,
  });
});

test('a set keeps the smallest values', () => {
  const values = Array.from({ length: 200 }, (_, index) => String(index).padStart(3, '0'));
  const state = fold(values.toReversed().map((value) => ({ ...at(1, 0, {}), sets: { names: [value] } })));
  expect(state?.sets.names).toEqual(values.slice(0, maxSetValues));
});

test('order keys sort as their parts do', () => {
  const parts = fc.tuple(
    fc.maxSafeNat(),
    fc.constantFrom('web', 'web-2', 'web_2', 'w'),
    fc.nat({ max: 1_000_000 }),
    fc.nat({ max: 1_000_000_000 }),
    fc.nat({ max: 1_000 }),
  );
  const keyOf = ([sequence, output, file, row, part]: [number, string, number, number, number]): string =>
    orderKeyOf(sequence, taskId, output, file, row, part);
  fc.assert(
    fc.property(parts, parts, (a, b) => {
      const differing = a.findIndex((value, index) => value !== b[index]);
      const smaller = differing !== -1 && (a[differing] ?? 0) < (b[differing] ?? 0);
      expect(keyOf(a) < keyOf(b)).toBe(smaller);
    }),
    { seed },
  );
  expect(() => orderKeyOf(-1, taskId, 'xml', 0, 0, 0)).toThrow(RangeError);
});

test('records of a row and records without one never share a part', () => {
  expect(partOf('row', 0)).toBe(0);
  expect(partOf('records', 0)).toBeGreaterThan(partOf('row', 100_000));
  expect(() => orderKeyOf(0, taskId, 'xml', 0, 0, partOf('records', 500_000))).not.toThrow();
});
