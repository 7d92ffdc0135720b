// What the compiler says about a text, as lines to compare with.
import { compileDefinition } from '#sonar/definition/compile.ts';

/** `LINE:COLUMN PATH: MESSAGE | HINT` of every problem. */
export function problemsOf(source: string): string[] {
  const result = compileDefinition(source);
  if (result.ok) return [];
  return result.problems.map(
    ({ line, column, path, message, hint }) =>
      `${line}:${column} ${path}: ${message}${hint === null ? '' : ` | ${hint}`}`,
  );
}

/** A definition of one step `scan` with these lines in it, and a step `other` before it. */
export const withStep = (...lines: string[]): string =>
  [
    'sonar: 1',
    'name: test',
    'inputs: {hosts: {type: hosts}, ports: {type: text, default: 1-10}}',
    'steps:',
    '  other:',
    '    tags: [tool]',
    '    command: [tool, "${out.rows}", "${out.lines}"]',
    '    outputs: {rows: {path: r.xml, read: nmap-xml}, lines: {path: l.txt}, page: {path: p.jsonl, read: jsonl}}',
    '  scan:',
    ...lines.map((line) => `    ${line}`),
  ].join('\n');
/** What every step must have. */
export const ok = ['tags: [tool]', 'command: [tool]'];
