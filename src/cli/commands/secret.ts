import type { Command } from 'commander';
import { namePattern } from '#sonar/contracts/names.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { formatTime } from '../figures.ts';
import type { Run } from '../session.ts';
import { addPageOptions, type PageOptions } from '../word-parsers.ts';

export function addSecretCommands(program: Command, run: Run): void {
  const secret = program.command('secret').description('what commands must know and nobody may read');
  secret
    .command('set')
    .description('set or replace a secret; its value is read from standard input')
    .argument('<name>', 'what definitions call it')
    .action((name: string) =>
      run(async (session) => {
        if (!namePattern.test(name))
          throw new SonarError(
            'usage',
            `"${name}" cannot be the name of a secret: a lower-case letter, then up to 62 of a–z, 0–9, - and _`,
          );
        const value = withoutLastLineEnd(await session.surroundings.readStdin());
        if (value === '')
          throw new SonarError(
            'usage',
            `standard input holds no value; write: sonar secret set ${name} < FILE`,
          );
        const client = await session.api();
        const set = await client.setSecret(name, value);
        session.answer(set, () => [`secret ${set.name} is set; steps get it by: secrets: [${set.name}]`]);
      }),
    );

  addPageOptions(secret.command('list').description('names of the secrets, never their values')).action(
    (options: PageOptions) =>
      run(async (session) => {
        const client = await session.api();
        session.answerList(
          await client.secrets.take({}, options.limit, options.after),
          [
            { title: 'NAME', cell: (row) => row.name, shrinkTo: 12 },
            { title: 'SET', cell: (row) => formatTime(row.updatedAt) },
            { title: 'BY', cell: (row) => row.updatedBy, shrinkTo: 8 },
          ],
          'no secrets yet; set one with: sonar secret set NAME < FILE',
        );
      }),
  );
}

/** `echo` ends its line; the value does not. */
const withoutLastLineEnd = (text: string): string => text.replace(/\r?\n$/, '');
