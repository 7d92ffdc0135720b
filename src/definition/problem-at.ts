// A fault that only the database knows of, at its place in the text.
import type { DefinitionProblem } from '#sonar/contracts/definition.ts';
import { ProblemList } from './problem-list.ts';
import { readYaml } from './read-yaml.ts';
import { below } from './source-node.ts';

/** @param keys the mapping keys that lead there; the nearest place that is written stands for it. */
export function problemAt(
  source: string,
  keys: readonly string[],
  message: string,
  hint: string | null,
): DefinitionProblem {
  const problems = new ProblemList(source);
  let node = readYaml(source, new ProblemList(source));
  let at = node?.at ?? 0;
  for (const key of keys) {
    const entry = node?.kind === 'map' ? node.entries.find((candidate) => candidate.key === key) : undefined;
    if (entry === undefined) break;
    at = entry.keyAt;
    node = entry.value;
  }
  problems.add(keys.reduce(below, ''), at, message, hint);
  return problems.sorted()[0] as DefinitionProblem;
}
