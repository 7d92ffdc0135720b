// `sonar definition try`: one step of a definition on one item, on this machine, without an api.
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { SonarError } from '#sonar/platform/errors.ts';
import type { Tried } from '#sonar/trial/try-step.ts';
import { type ExitCode, exitCodes } from '../exit-codes.ts';
import { addGivenOptions, type GivenOptions } from '../given-options.ts';
import type { Run, Session } from '../session.ts';
import { gathered, positiveInteger } from '../word-parsers.ts';

interface TryOptions extends GivenOptions {
  step?: string;
  item?: string[];
  file?: string[];
  from?: string[];
  limit: number;
  keep?: true;
}

const helpText = `
Without --item the first item is taken that a scan would make. Secrets are taken from the environment, under the
names that the command sees.

Examples:
  sonar definition try survey.yaml --step subdomains --item example.com --allow example.com
  sonar definition try survey.yaml --step web --from resolve.dns=dns.jsonl --allow example.com

Exit codes: 0 completed, or nothing to do; 2 usage; 3 completed, but a file of it could not be read; 4 failed, timed out
or refused; 5 interrupted.`;

/** @param program holds the command `definition` already */
export function addDefinitionTryCommand(program: Command, run: Run): void {
  const definition = program.commands.find((command) => command.name() === 'definition');
  if (definition === undefined) throw new SonarError('internal', 'there is no command `definition`');
  addGivenOptions(
    definition
      .command('try')
      .description('run one step of a file here, on one item, and show what its outputs are read as')
      .argument('<file>', 'a definition in YAML'),
  )
    .option('--step <name>', 'the step; needed where there are several')
    .option('--item <item>', 'the item; a row as JSON; of a batch may be repeated', gathered)
    .option('--file <name=path>', 'an input that is a file; may be repeated', gathered)
    .option('--from <step.output=path>', 'a file or folder in place of a result; may be repeated', gathered)
    .option('--limit <n>', 'show at most so many of each; all are read and counted', positiveInteger, 20)
    .option('--keep', 'leave the folder with the outputs')
    .addHelpText('after', helpText)
    .action((file: string, options: TryOptions) => run((session) => tryHere(session, file, options)));
}

async function tryHere(session: Session, file: string, options: TryOptions): Promise<ExitCode> {
  const { workingDirectory, environment, onInterrupt } = session.surroundings;
  const { parseInputs, parseScope } = await import('../scan-inputs.ts');
  const { tryStep } = await import('#sonar/trial/try-step.ts');
  const { triedLines } = await import('../tried-lines.ts');
  const { createLogger } = await import('#sonar/platform/logger.ts');
  const { removeTree } = await import('#sonar/worker/directories.ts');
  const definition = await compiledFile(file, workingDirectory);
  const step = stepOf(definition, options.step);
  const { parseScope: readScope } = await import('#sonar/domain/scope.ts');
  const scope = parseScope(options, workingDirectory) ?? definition.scope;
  if (scope === null)
    throw new SonarError(
      'usage',
      'a trial touches what a scan would: say what may be scanned, with --allow example.com or scope in the definition',
    );
  const parsed = readScope(scope);
  if (!parsed.ok)
    throw new SonarError(
      'usage',
      parsed.problems.map(({ path, message }) => `${path}: ${message}`).join('; '),
    );
  const request = {
    definition,
    definitionFolder: dirname(resolve(workingDirectory, file)),
    step,
    inputs: parseInputs(options.input ?? [], workingDirectory),
    inputFiles: new Map(
      [...pairs(options.file ?? [], '--file', workingDirectory)].map(([name, paths]) => [
        name,
        paths[0] ?? '',
      ]),
    ),
    scope: parsed.scope,
    items: options.item ?? [],
    given: pairs(options.from ?? [], '--from', workingDirectory),
    environment,
    limit: options.limit,
  };
  const directory = await mkdtemp(join(tmpdir(), 'sonar-try-'));
  const interruption = new AbortController();
  const settled = onInterrupt(() => interruption.abort());
  try {
    const tried = await tryStep(request, directory, createLogger('try', 'silent'), interruption.signal);
    session.answer(tried, (value) => triedLines(session, value));
    if (options.keep) session.hint(`its files are in ${directory}`);
    return exitCodeOf(tried);
  } finally {
    settled();
    if (!options.keep) await removeTree(directory);
  }
}

async function compiledFile(file: string, workingDirectory: string) {
  const { readNamedFile } = await import('../scan-inputs.ts');
  const { compileDefinition } = await import('#sonar/definition/compile.ts');
  const compiled = compileDefinition(readNamedFile(file, 'definition', workingDirectory));
  if (compiled.ok) return compiled.definition;
  const { problems } = compiled;
  throw new SonarError('invalid', `${file}: the definition has ${problems.length} problem(s)`, {
    details: { problems, file },
  });
}

type Compiled = Awaited<ReturnType<typeof compiledFile>>;

function stepOf({ steps }: Compiled, name: string | undefined): Compiled['steps'][number] {
  const [first, second] = steps;
  const step = name === undefined && second === undefined ? first : steps.find((one) => one.name === name);
  if (step !== undefined) return step;
  const names = steps.map((one) => one.name).join(', ');
  throw new SonarError(
    'usage',
    name === undefined
      ? `say which step to try: --step, one of ${names}`
      : `--step: there is no step "${name}"; there are ${names}`,
  );
}

/** name → paths, in the order in which they were given. */
function pairs(words: readonly string[], option: string, workingDirectory: string): Map<string, string[]> {
  const gatheredPaths = new Map<string, string[]>();
  for (const word of words) {
    const at = word.indexOf('=');
    if (at <= 0 || at === word.length - 1)
      throw new SonarError('usage', `${option} ${word}: write it as name=path`);
    const name = word.slice(0, at);
    const path = resolve(workingDirectory, word.slice(at + 1));
    gatheredPaths.set(name, [...(gatheredPaths.get(name) ?? []), path]);
  }
  return gatheredPaths;
}

function exitCodeOf({ outcome, files }: Tried): ExitCode {
  if (outcome === 'cancelled') return exitCodes.cancelled;
  if (outcome !== 'completed' && outcome !== 'no_work') return exitCodes.failed;
  return files.some(({ poisoned }) => poisoned) ? exitCodes.completedWithErrors : exitCodes.ok;
}
