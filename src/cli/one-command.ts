// A definition made of one command line: what `sonar scan run` applies before it starts a scan of it.
import { createHash } from 'node:crypto';
import { stringify } from 'yaml';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { SonarError } from '#sonar/platform/errors.ts';

export interface OneCommand {
  command: readonly string[];
  tags: readonly string[];
  /** The command runs once for each line of the input. */
  each: boolean;
  /** What is checked against the scope; null: nothing is. */
  target: string | null;
  read: string | null;
  timeout: string | null;
  retry: number | null;
  maxConcurrent: number | null;
}

/** The input that holds the items. */
export const eachInput = 'each';
/** The output that the command's result is kept as. */
const resultOutput = 'result';

/**
 * The name holds a hash of all the rest, so the same command is the same definition and never another revision of it.
 * @throws SonarError `usage` with every problem, told of the command line and not of the text that nobody wrote.
 */
export function definitionOf(one: OneCommand): { name: string; source: string } {
  const step = {
    tags: [...one.tags],
    ...(one.each ? { foreach: { in: `inputs.${eachInput}` } } : {}),
    ...(one.target === null ? {} : { target: one.target }),
    command: [...one.command],
    outputs: {
      [resultOutput]: {
        // A command that names the file writes it; of any other it is what it prints.
        ...(one.command.some((word) => word.includes(`\${out.${resultOutput}}`))
          ? { path: resultOutput }
          : { stdout: true }),
        ...(one.read === null ? {} : { read: one.read }),
      },
    },
    ...(one.timeout === null ? {} : { timeout: one.timeout }),
    ...(one.retry === null ? {} : { retry: one.retry }),
    ...(one.maxConcurrent === null ? {} : { maxConcurrent: one.maxConcurrent }),
  };
  const body = {
    ...(one.each ? { inputs: { [eachInput]: { type: 'lines', required: true } } } : {}),
    steps: { run: step },
  };
  const hash = createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 12);
  const name = `run-${programOf(one.command[0] ?? '')}-${hash}`;
  // Quoted throughout: YAML makes nothing of a word but that word.
  const source = stringify(
    { sonar: 1, name, ...body },
    { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 },
  );
  const compiled = compileDefinition(source);
  if (!compiled.ok)
    throw new SonarError(
      'usage',
      compiled.problems
        .map(({ path, message, hint }) => `${wordOf(path)}: ${message}${hint ? ` (${hint})` : ''}`)
        .join('\n'),
    );
  return { name, source };
}

/** The last part of a path, as a name may hold it. */
function programOf(word: string): string {
  const base = word.split('/').at(-1) ?? '';
  return (
    base
      .toLowerCase()
      .replaceAll(/[^a-z0-9_-]+/g, '-')
      .slice(0, 32) || 'command'
  );
}

/** `steps.run.command[2]` as the person at the command line knows it. */
function wordOf(path: string): string {
  const place = path.replace(/^steps\.run\.?/, '');
  if (place.startsWith('command')) return place.replace('command', 'the command');
  return place === '' ? 'the command' : `--${place.replace(/^outputs\.result\./, '').replace('tags', 'tag')}`;
}
