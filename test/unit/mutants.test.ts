// A mutant that no longer applies, or whose test has another name by now, proves nothing.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../scripts/check/tool.ts';
import { isNamedTest, type Mutant, readMutants } from '../mutants/mutant.ts';

const root = join(import.meta.dirname, '..', '..');
const mutants = readMutants();

test('there are mutants, each with a patch of its own', () => {
  expect(mutants.length).toBeGreaterThan(0);
  expect(
    new Set(mutants.map(({ patch }) => readFileSync(patch, 'utf8').split('\ndiff --git ')[1])).size,
  ).toBe(mutants.length);
});

test.each(mutants)('$id applies to the code as it is, and names a test that is there', async (mutant) => {
  const applied = await run('git', ['apply', '--check', mutant.patch], root);
  expect(applied.output).toBe('');
  expect(readFileSync(join(root, mutant.testFile), 'utf8')).toContain(lastWordsOf(mutant));
});

test('the table of promises names every mutant, and no other', () => {
  const table = readFileSync(join(root, 'docs/reliability.md'), 'utf8');
  const cells = table
    .split('\n')
    .flatMap((line) => /^\| .* \| .* \| .* \| (?<mutants>.*) \|$/.exec(line)?.groups?.mutants ?? []);
  const named = cells.flatMap((cell) =>
    [...cell.matchAll(/`(?<id>[a-z-]+)`/g)].map((match) => match.groups?.id),
  );
  expect(new Set(named)).toEqual(new Set(mutants.map(({ id }) => id)));
});

test('a name that ends in … stands for all names that begin so', () => {
  const mutant = { testName: 'a placer…' } as Mutant;
  expect(isNamedTest(mutant, 'a placer at once')).toBe(true);
  expect(isNamedTest(mutant, 'another placer')).toBe(false);
  expect(isNamedTest({ testName: 'a placer' } as Mutant, 'a placer at once')).toBe(false);
});

/** The end of a test's full name stands in its file as it is; what comes before may be the name of a describe. */
const lastWordsOf = ({ testName }: Mutant): string =>
  testName.replace(/…$/, '').split(' ').slice(-3).join(' ');
