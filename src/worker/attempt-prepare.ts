// An attempt's folders, and its command with everything that is this machine's filled in.
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { AttemptContext } from './attempt-context.ts';
import { type Failure, failureOf } from './command-result.ts';
import { removeTree } from './directories.ts';
import { type InputPaths, pathProblem, resolveArgument } from './paths.ts';

/** What a command is prepared from: of an attempt, or of a trial that has no api behind it. */
export interface CommandContext {
  readonly message: Pick<
    AttemptContext['message'],
    'attemptId' | 'command' | 'stdin' | 'env' | 'inputs' | 'outputs' | 'okExit' | 'timeoutMs' | 'step'
  >;
  readonly folders: AttemptContext['folders'];
  readonly parts: {
    readonly config: Pick<
      AttemptContext['parts']['config'],
      'outputCapBytes' | 'streamCapBytes' | 'headBytes' | 'termGraceMs'
    >;
    readonly directories: Pick<AttemptContext['parts']['directories'], 'streams'>;
  };
}

/** Only what the attempt needs: small commands are many, and each folder costs as much as their start. */
export async function makeFolders(context: CommandContext): Promise<void> {
  const { folders, message } = context;
  try {
    await mkdir(folders.root, { mode: 0o700 });
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'EEXIST') throw error;
    // The same attempt was here before and its folder could not be cleared.
    await clearWork(context);
    await mkdir(folders.root, { mode: 0o700 });
  }
  await mkdir(folders.tmp, { mode: 0o700 });
  if (message.inputs.length > 0) await mkdir(folders.in, { mode: 0o700 });
  if (message.outputs.some(({ path }) => path !== null)) await mkdir(folders.out, { mode: 0o700 });
}

/** Removes what the attempt left on this disk. */
export async function clearWork(context: CommandContext): Promise<void> {
  const { root, tmp } = context.folders;
  // Most commands leave nothing, and to look for it costs more than to find that the folders are empty.
  await rmdir(tmp)
    .then(() => rmdir(root))
    .catch(() => removeTree(root));
  if (takesStdout(context)) await rm(stdoutPath(context), { force: true });
}

export interface Prepared {
  argv: string[];
  env: Record<string, string>;
  stdinPath: string | null;
}

/** Where declared stdout is kept. */
export const stdoutPath = ({ parts, message }: CommandContext) =>
  join(parts.directories.streams, `${message.attemptId}.stdout`);
/** Whether a declared output takes the command's stdout. */
export const takesStdout = ({ message }: CommandContext) => message.outputs.some(({ path }) => path === null);

/** The command with every path local; a problem where the definition and the inputs do not fit. */
export async function prepareCommand(
  context: CommandContext,
  inputs: InputPaths,
): Promise<Prepared | { problem: NonNullable<Failure> }> {
  const { message, folders } = context;
  for (const { name, path } of message.outputs) {
    if (path === null) continue;
    const flaw = pathProblem(path);
    if (flaw !== null)
      return { problem: failureOf(failureCodes.outputRefused, `output ${name}: its path ${flaw}`) };
    await mkdir(dirname(join(folders.out, path)), { recursive: true });
  }
  const resolve = (argument: Parameters<typeof resolveArgument>[0]) =>
    resolveArgument(argument, message.outputs, folders, inputs);
  const refused = (problem: string) => ({ problem: failureOf(failureCodes.commandFailed, problem) });

  const argv: string[] = [];
  for (const argument of message.command) {
    const resolved = resolve(argument);
    if ('problem' in resolved) return refused(resolved.problem);
    argv.push(resolved.text);
  }
  const env: Record<string, string> = {
    PATH: searchPath(),
    HOME: folders.root,
    TMPDIR: folders.tmp,
    LANG: 'C.UTF-8',
  };
  for (const [name, argument] of Object.entries(message.env)) {
    const resolved = resolve(argument);
    if ('problem' in resolved) return refused(`environment variable ${name}: ${resolved.problem}`);
    env[name] = resolved.text;
  }
  if (message.stdin === null) return { argv, env, stdinPath: null };
  const [only, ...more] = message.stdin;
  if (only?.kind === 'in' && more.length === 0) {
    const path = inputs.get(only.name);
    const directory = message.inputs.some(({ name, as }) => name === only.name && as === 'directory');
    if (path === undefined || directory) return refused(`stdin: \${in.${only.name}} is no input file`);
    return { argv, env, stdinPath: path };
  }
  const text = resolve(message.stdin);
  if ('problem' in text) return refused(`stdin: ${text.problem}`);
  const stdinPath = join(folders.tmp, 'stdin');
  await writeFile(stdinPath, text.text, { mode: 0o600 });
  return { argv, env, stdinPath };
}

function searchPath(): string {
  return process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin';
}
