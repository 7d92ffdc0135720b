// One command here, without an api: prepared, run, bounded and judged like an attempt's, on a disk of its own.
import { randomUUID } from 'node:crypto';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { type CommandContext, makeFolders, prepareCommand } from './attempt-prepare.ts';
import { failureOf, judgeNotStarted, type Verdict } from './command-result.ts';
import { examineCommand, spawnRequestOf } from './command-run.ts';
import { workerConfigSchema } from './config.ts';
import { makeDirectories } from './directories.ts';
import type { OutputFile } from './outputs.ts';
import { attemptFolders, type InputPaths } from './paths.ts';
import { createSpawner } from './spawner.ts';

export interface Trial {
  message: Omit<CommandContext['message'], 'attemptId'>;
  /** Where each input lies. */
  inputs: InputPaths;
  secrets: Readonly<Record<string, string>>;
  /** A tag of the step, for messages. */
  tag: string;
}

export interface TrialEnd extends Verdict {
  /** As it was run; empty where it could not be prepared. */
  argv: string[];
  exitCode: number | null;
  signal: string | null;
  durationMs: number;
  /** What was kept of them; a declared stdout is among the files. */
  stdout: Buffer;
  stderr: Buffer;
  files: OutputFile[];
}

const shape = workerConfigSchema.shape;
const config = {
  outputCapBytes: shape.outputCapBytes.parse(undefined),
  streamCapBytes: shape.streamCapBytes.parse(undefined),
  headBytes: shape.headBytes.parse(undefined),
  termGraceMs: shape.termGraceMs.parse(undefined),
};

/** @param directory is the trial's own; who made it removes it. @param signal ends the command, and it is cancelled. */
export async function runTrial(
  trial: Trial,
  directory: string,
  log: Logger,
  signal: AbortSignal,
): Promise<TrialEnd> {
  const directories = await makeDirectories(directory, 'trial');
  const attemptId = randomUUID();
  const context: CommandContext = {
    message: { ...trial.message, attemptId },
    folders: attemptFolders(directories.work, attemptId),
    parts: { config, directories },
  };
  await makeFolders(context);
  const prepared = await prepareCommand(context, trial.inputs);
  if ('problem' in prepared) return without([], prepared.problem);
  const { argv } = prepared;
  const spawner = createSpawner(directories, log);
  try {
    const request = spawnRequestOf(context, { ...prepared, env: { ...prepared.env, ...trial.secrets } });
    const command = spawner.run(request, () => undefined);
    const cancel = (): void => command.end(config.termGraceMs);
    signal.addEventListener('abort', cancel);
    if (signal.aborted) cancel();
    const end = await command.ended.finally(() => signal.removeEventListener('abort', cancel));
    if (end.kind === 'helper_lost')
      return without(argv, failureOf(failureCodes.commandFailed, 'the process that ran it was killed'));
    if (end.kind === 'not_started') {
      const at = { program: argv[0] ?? '', worker: 'here', image: '', tag: trial.tag };
      const failure = judgeNotStarted(end, { ...at, path: prepared.env.PATH ?? '' });
      return without(
        argv,
        failure === 'lack'
          ? failureOf(failureCodes.commandFailed, `this machine could not start it: ${end.message}`)
          : failure,
      );
    }
    const { files, verdict } = await examineCommand(context, end, signal.aborted);
    const { exitCode, durationMs } = end;
    const bytes = (head: string): Buffer => Buffer.from(head, 'base64');
    return {
      ...verdict,
      argv,
      exitCode,
      signal: end.signal,
      durationMs,
      stdout: bytes(end.stdout.head),
      stderr: bytes(end.stderr.head),
      files,
    };
  } finally {
    await spawner.stop();
  }
}

const without = (argv: string[], failure: Verdict['failure']): TrialEnd => ({
  outcome: 'not_started',
  failure,
  argv,
  exitCode: null,
  signal: null,
  durationMs: 0,
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  files: [],
});
