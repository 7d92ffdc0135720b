import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { UploadedFiles } from '#sonar/contracts/scan-api.ts';
import { isSonarError, SonarError } from '#sonar/platform/errors.ts';
import type { ApiClient } from '../api-client.ts';
import type { PlanOptions } from '../definition-plan.ts';
import { exitCodes } from '../exit-codes.ts';
import { formatTime } from '../figures.ts';
import { addGivenOptions } from '../given-options.ts';
import { inOrder, problemLine } from '../problem-lines.ts';
import type { Run } from '../session.ts';
import { addPageOptions, gathered, type PageOptions, positiveInteger } from '../word-parsers.ts';

/** A text that does not compile is sent without files: the api says what is wrong with it. */
async function filesOf(client: ApiClient, source: string, file: string): Promise<UploadedFiles | undefined> {
  if (!/^files:/m.test(source)) return undefined;
  const { compileDefinition } = await import('#sonar/definition/compile.ts');
  const compiled = compileDefinition(source);
  if (!compiled.ok) return undefined;
  const { uploadDefinitionFiles } = await import('../file-upload.ts');
  return uploadDefinitionFiles(client, compiled.definition, file);
}

export function addDefinitionCommands(program: Command, run: Run): void {
  const definition = program.command('definition').description('what a scan does, as YAML');

  definition
    .command('validate')
    .description('find all problems of a file here, without an api and without applying it')
    .argument('<file>', 'a definition in YAML')
    .action((file: string) =>
      run(async (session) => {
        const { readNamedFile } = await import('../scan-inputs.ts');
        const source = readNamedFile(file, 'definition', session.surroundings.workingDirectory);
        const { compileDefinition } = await import('#sonar/definition/compile.ts');
        const compiled = compileDefinition(source);
        const answer = compiled.ok
          ? { valid: true, name: compiled.definition.name, problems: [] }
          : { valid: false, name: null, problems: compiled.problems };
        session.answer(answer, ({ valid, name, problems }) =>
          valid
            ? [`${file}: "${name}" is valid; apply it with: sonar definition apply ${file}`]
            : inOrder(problems).map((problem) => problemLine(file, problem)),
        );
        return answer.valid ? exitCodes.ok : exitCodes.fault;
      }),
    );

  definition
    .command('apply')
    .description('make a file the newest revision of its definition, for new scans and for those that run')
    .argument('<file>', 'a definition in YAML')
    .action((file: string) =>
      run(async (session) => {
        const { readNamedFile } = await import('../scan-inputs.ts');
        const source = readNamedFile(file, 'definition', session.surroundings.workingDirectory);
        const client = await session.api();
        const files = await filesOf(client, source, resolve(session.surroundings.workingDirectory, file));
        const applied = await client.applyDefinition(source, files).catch((error: unknown) => {
          if (!isSonarError(error, 'invalid')) throw error;
          throw new SonarError('invalid', `${file}: ${error.message}; nothing was applied`, {
            cause: error,
            details: { ...error.details, file },
          });
        });
        session.answer(applied, () => [
          `${applied.name} revision ${applied.revision}: steps ${applied.steps.join(', ')}`,
          `start a scan with: sonar scan start ${applied.name}`,
        ]);
      }),
    );

  addGivenOptions(
    definition
      .command('plan')
      .description('show the tasks that a scan would make, without making any')
      .argument('<name or file>', 'a definition that was applied, or a file of one'),
  )
    .option('--file <name=path>', 'an input that is a file, uploaded; may be repeated', gathered)
    .option('--limit <n>', 'show at most so many tasks of each step; all are counted', positiveInteger, 5)
    .action((named: string, options: PlanOptions) =>
      run(async (session) => {
        const { planDefinition } = await import('../definition-plan.ts');
        return planDefinition(session, named, options);
      }),
    );

  definition
    .command('delete')
    .description('start no more scans of a definition; those that run keep its last revision')
    .argument('<name>', 'a definition that was applied')
    .action((name: string) =>
      run(async (session) => {
        const client = await session.api();
        session.answer(await client.deleteDefinition(name), () => [
          `${name} is deleted; scans that run go on with its last revision`,
          'apply it again to have it back',
        ]);
      }),
    );

  addPageOptions(definition.command('list').description('the newest revision of every definition')).action(
    (options: PageOptions) =>
      run(async (session) => {
        const client = await session.api();
        session.answerList(
          await client.definitions.take({}, options.limit, options.after),
          [
            { title: 'NAME', cell: (row) => row.name, shrinkTo: 12 },
            { title: 'REVISION', align: 'right', cell: (row) => row.revision },
            { title: 'APPLIED', cell: (row) => formatTime(row.appliedAt) },
            { title: 'STEPS', cell: (row) => row.steps.join(', '), shrinkTo: 10 },
          ],
          'no definitions yet; apply one with: sonar definition apply FILE.yaml',
        );
      }),
  );
}
