// How a prepared command is run and what it left is judged: the same for an attempt and for a trial.
import { type CommandContext, type Prepared, stdoutPath, takesStdout } from './attempt-prepare.ts';
import { judge, type Verdict } from './command-result.ts';
import { collectOutputs, type OutputFile } from './outputs.ts';
import type { CommandEnd, SpawnRequest } from './spawn-protocol.ts';

export function spawnRequestOf(
  context: CommandContext,
  prepared: Prepared,
): Omit<SpawnRequest, 'type' | 'groups' | 'work'> {
  const { config } = context.parts;
  const stream = { path: null, capBytes: config.streamCapBytes, headBytes: config.headBytes };
  return {
    id: context.message.attemptId,
    ...prepared,
    cwd: context.folders.root,
    stdout: takesStdout(context)
      ? { path: stdoutPath(context), capBytes: config.outputCapBytes, headBytes: 0 }
      : stream,
    stderr: stream,
    timeoutMs: context.message.timeoutMs,
    graceMs: config.termGraceMs,
  };
}

/** Of a cancelled command nothing is taken. */
export async function examineCommand(
  context: CommandContext,
  end: Extract<CommandEnd, { kind: 'exited' }>,
  cancelled: boolean,
): Promise<{ files: OutputFile[]; verdict: Verdict }> {
  const { message, folders, parts } = context;
  const { outputCapBytes } = parts.config;
  const outputs = cancelled
    ? { files: [], missing: [], refused: [] }
    : await collectOutputs(message.outputs, folders, outputCapBytes);
  const files: OutputFile[] = [...outputs.files];
  if (!cancelled)
    for (const { name } of message.outputs.filter(({ path }) => path === null)) {
      const { size, sha256, truncated, fault } = end.stdout;
      files.push({ entry: { output: name, path: 'stdout', size, sha256 }, path: stdoutPath(context) });
      if (fault !== null)
        outputs.refused.push(`output ${name}: what was kept of stdout is not whole (${fault})`);
      else if (truncated)
        outputs.refused.push(`output ${name}: stdout is larger than ${outputCapBytes} bytes`);
    }
  return { files, verdict: judge(message, end, outputs, cancelled) };
}
