import { type Command, Option } from 'commander';
import type { TokenRole } from '#sonar/contracts/scan-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import type { Run } from '../session.ts';
import { wordList } from '../word-parsers.ts';

const roles = ['viewer', 'operator', 'admin', 'worker'] as const satisfies readonly TokenRole[];

interface CreateOptions {
  role: TokenRole;
  name: string;
  tags?: string[];
  namePrefix?: string;
}

export function addTokenCommands(program: Command, run: Run): void {
  const token = program.command('token').description('who may use the API');
  token
    .command('create')
    .description('make a token; it is shown once and never again')
    .addOption(new Option('--role <role>', 'what it may do').choices(roles).makeOptionMandatory())
    .requiredOption('--name <name>', 'whose it is')
    .option(
      '--tags <tags>',
      'of a worker: the tags it may take work of, with commas; any unless given',
      wordList,
    )
    .option('--name-prefix <prefix>', "of a worker: what its workers' names start with")
    .action(({ role, name, tags, namePrefix }: CreateOptions) =>
      run(async (session) => {
        if (role !== 'worker' && (tags !== undefined || namePrefix !== undefined))
          throw new SonarError(
            'usage',
            `--tags and --name-prefix bind worker tokens; a token of role ${role} has neither`,
          );
        const client = await session.api();
        const created = await client.createToken({
          role,
          name,
          ...(tags === undefined ? {} : { tags }),
          ...(namePrefix === undefined ? {} : { namePrefix }),
        });
        session.hint(
          `a token of role ${created.role}; it is shown this once: keep it where ${keeper(role)} finds it as SONAR_TOKEN`,
        );
        session.answer(created, (answer) => [answer.token]);
      }),
    );
}

function keeper(role: TokenRole): string {
  return role === 'worker' ? 'the worker' : 'its owner';
}
