import { delimiter, dirname } from 'node:path';
import { checkout, inCheckout } from '../checkout.ts';
import { ProcessGroup } from '../process-group.ts';

/** No tool of the house takes longer than seconds; one that hangs must not hang the check. */
const toolLimitMs = 300_000;

export interface ToolResult {
  ok: boolean;
  /** stdout alone: what a machine reads. */
  stdout: string;
  /** stdout and stderr as they came: what a person reads. */
  output: string;
}

/** Runs an installed package's command on this Node. `path` is below node_modules. */
export async function runTool(
  path: string,
  args: readonly string[],
  cwd: string = checkout,
): Promise<ToolResult> {
  return run(process.execPath, [inCheckout('node_modules', path), ...args], cwd);
}

export async function run(
  command: string,
  args: readonly string[],
  cwd: string = checkout,
): Promise<ToolResult> {
  const env = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH ?? ''].join(delimiter) };
  const group = new ProcessGroup(command, args, { cwd, env, output: 'pipe' });
  let stdout = '';
  let output = '';
  group.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    output += text;
  });
  group.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    group.signal('SIGKILL');
  }, toolLimitMs);
  const { code, signal, error } = await group.ended;
  clearTimeout(timer);
  if (error) output += `${command} could not be run: ${error.message}\n`;
  if (signal)
    output += `${args[0] ?? command} was ended by ${signal}${late ? ` after ${toolLimitMs / 1000} s` : ''}\n`;
  return { ok: code === 0, stdout, output };
}
