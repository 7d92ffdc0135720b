import { Command, CommanderError } from 'commander';
import { isSonarError } from '#sonar/platform/errors.ts';
import { addDefinitionCommands } from './commands/definition.ts';
import { addInventoryCommands } from './commands/inventory.ts';
import { addDefinitionTryCommand } from './commands/local-definition-try.ts';
import { addDoctorCommand } from './commands/local-doctor.ts';
import { addMigrateCommands } from './commands/local-migrate.ts';
import { addParseCommand } from './commands/local-parse.ts';
import { addServeCommand } from './commands/local-serve.ts';
import { addUpCommand } from './commands/local-up.ts';
import { addWorkerStartCommand } from './commands/local-worker.ts';
import { addPoisonCommands } from './commands/poison.ts';
import { addScanCommands } from './commands/scan.ts';
import { addSecretCommands } from './commands/secret.ts';
import { addTaskCommands } from './commands/task.ts';
import { addTokenCommands } from './commands/token.ts';
import { addWorkerCommands } from './commands/worker.ts';
import { exitCodes } from './exit-codes.ts';
import { reportFault } from './fault-report.ts';
import { safeJson } from './safe-text.ts';
import { type GlobalOptions, type Run, Session, type Surroundings } from './session.ts';

const firstUse = `
The first time, in two terminals:
  sonar up                                   services, roles, and a token for this folder
  sonar worker start --name w1 --tags nmap   something that runs commands
and then:
  sonar definition apply FILE.yaml
  sonar scan start NAME --allow 127.0.0.0/8 --input targets=@hosts.txt --wait
  sonar inventory list

Exit codes: 0 ok or Completed, 1 another fault, 2 usage, 3 CompletedWithErrors, 4 Failed, 5 Cancelled,
6 unreachable.`;

/** Runs one command line, without the program's own two words in front, and gives the exit code. */
export async function runCli(words: readonly string[], surroundings: Surroundings): Promise<number> {
  // Before the words are parsed it has to be known how a fault of theirs is told.
  const options = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  const json = options.includes('--json');
  const { stdout, stderr } = surroundings;
  let exitCode: number = exitCodes.ok;
  const program = new Command('sonar');
  const run: Run = async (work) => {
    const code = await work(new Session(surroundings, program.opts<GlobalOptions>()));
    exitCode = code ?? exitCodes.ok;
  };
  program
    .description('Durable command-line scans over a fleet of disposable workers.')
    .version(surroundings.version, '--version', 'show the version')
    .option('--json', 'one JSON value on stdout; a fault as one problem on stderr')
    .option('--api <url>', 'address of the API (or SONAR_API_URL, or what "sonar up" wrote here)')
    .option('--token <token>', 'who is asking (better: SONAR_TOKEN, which other users cannot see)')
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true, sortOptions: false })
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => {
        if (!json) stderr.write(text);
      },
      getOutHelpWidth: () => (stdout.isTerminal ? stdout.size().columns : 100),
      getErrHelpWidth: () => (stderr.isTerminal ? stderr.size().columns : 100),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .showHelpAfterError('(add --help to see what it takes)')
    .exitOverride()
    .addHelpText('after', firstUse);
  addUpCommand(program, run);
  addDoctorCommand(program, run);
  addServeCommand(program, run);
  addMigrateCommands(program, run);
  addDefinitionCommands(program, run);
  addDefinitionTryCommand(program, run);
  addScanCommands(program, run);
  addTaskCommands(program, run);
  addPoisonCommands(program, run);
  addInventoryCommands(program, run);
  addParseCommand(program, run);
  const worker = addWorkerCommands(program, run);
  addWorkerStartCommand(worker, run);
  addTokenCommands(program, run);
  addSecretCommands(program, run);
  try {
    await program.parseAsync([...words], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (isCommanderError(error)) {
      if (error.exitCode !== 0 && json) stderr.write(`${safeJson(usageProblem(error), 0)}\n`);
      // Help that was asked for is no fault; help in place of a missing command is.
      return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    }
    const report = reportFault(error);
    stderr.write(json ? `${safeJson(report.problem, 0)}\n` : `${report.lines.join('\n')}\n`);
    return report.exitCode;
  }
}

function isCommanderError(error: unknown): error is CommanderError {
  return !isSonarError(error) && error instanceof CommanderError;
}

function usageProblem(error: CommanderError): Record<string, unknown> {
  const detail = error.code === 'commander.help' ? 'a command is missing; add --help' : error.message;
  return {
    type: 'about:blank',
    title: 'usage',
    status: 0,
    code: 'usage',
    detail: detail.replace(/^error: /, ''),
  };
}
