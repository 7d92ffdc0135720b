// The definition language: YAML text in, a compiled definition or every fault of the text out.
import type { Definition, DefinitionProblem } from '#sonar/contracts/definition.ts';
import { resolveForeach } from './check-foreach.ts';
import { resolveInputSources } from './check-inputs.ts';
import { orderSteps } from './check-needs.ts';
import { checkTemplates } from './check-templates.ts';
import { FieldReading } from './field-reading.ts';
import { ProblemList } from './problem-list.ts';
import { readDefinition } from './read-definition.ts';
import { readYaml } from './read-yaml.ts';

export type CompileResult =
  | { ok: true; definition: Definition }
  /** In the order of the text; at least one. */
  | { ok: false; problems: DefinitionProblem[] };

/** Pure: the same text always gives the same result. Steps come after all that they need. */
export function compileDefinition(source: string): CompileResult {
  const problems = new ProblemList(source);
  const root = readYaml(source, problems);
  if (root === null) return { ok: false, problems: problems.sorted() };
  const reading = new FieldReading(problems);
  const { name, inputs, files, scope, records, steps: drafts } = readDefinition(reading, root);
  const ordered = orderSteps(reading, drafts);
  for (const draft of drafts) {
    resolveForeach({ reading, inputs, drafts }, draft);
    resolveInputSources({ reading, inputs, drafts }, draft);
  }
  for (const draft of drafts) checkTemplates({ problems, inputs, files, drafts }, draft);
  if (!problems.isEmpty) return { ok: false, problems: problems.sorted() };
  const declared = Object.keys(records).length === 0 ? {} : { records };
  const steps = ordered.map(({ step }) => step);
  return { ok: true, definition: { name, inputs, files, scope, ...declared, steps } };
}
