// What a torture does is fixed by its seed, and hurts enough.
import { compileDefinition } from '#sonar/definition/compile.ts';
import { differences } from '../../torture/oracle/finding.ts';
import { seededRandom } from '../../torture/random.ts';
import { planScans, shapes } from '../../torture/scans/catalog.ts';
import { definitionOf } from '../../torture/scans/definition-text.ts';
import { type FaultKind, faultWeights, planFaults } from '../../torture/schedule.ts';

const kinds = Object.keys(faultWeights) as FaultKind[];
const twentyMinutes = 20 * 60_000;
const seeds = Array.from({ length: 50 }, (_, seed) => seed);

test('the same seed gives the same faults and the same scans', () => {
  const both = [1, 2].map(() => {
    const random = seededRandom(7);
    const faults = planFaults(random, twentyMinutes, kinds);
    const scans = planScans(random, 40, twentyMinutes);
    return JSON.stringify({ faults, scans: scans.map(({ ref, atMs, expects }) => ({ ref, atMs, expects })) });
  });
  expect(both[0]).toBe(both[1]);
});

test('twenty minutes have at least a hundred faults, of every kind, with any seed', () => {
  const planned = seeds.map((seed) => planFaults(seededRandom(seed), twentyMinutes, kinds));
  expect(Math.min(...planned.map((faults) => faults.length))).toBeGreaterThanOrEqual(100);
  expect(planned.map((faults) => new Set(faults.map(({ kind }) => kind)).size)).toEqual(
    seeds.map(() => kinds.length),
  );
});

test('as many scans as there are shapes have each of them', () => {
  const scans = planScans(seededRandom(3), shapes.length, twentyMinutes);
  expect(new Set(scans.map(({ shape }) => shape.name)).size).toBe(shapes.length);
});

test('every shape is a definition', () => {
  const places = { ledger: '/ledger', marks: '/marks', files: '/files' };
  const faults = shapes.flatMap((shape) => {
    const compiled = compileDefinition(definitionOf(shape, places));
    return compiled.ok ? [] : compiled.problems;
  });
  expect(faults).toEqual([]);
});

test('differences are counted by name', () => {
  expect(differences(['a', 'a', 'b'], ['a', 'b', 'b', 'c'])).toEqual({ missing: ['a'], extra: ['b', 'c'] });
});
