import { runProgram } from './run-program.ts';

/** What a download may use. */
export interface DownloadContext {
  signal: AbortSignal;
  /** The caller's own, with its proxies, mirrors and certificates, for the registries' clients. */
  environment: NodeJS.ProcessEnv;
}

/** Runs a registry's ordinary client and returns what it printed. Throws `download_failed`. */
export function runClient(
  context: DownloadContext,
  cwd: string,
  command: string,
  args: readonly string[],
): Promise<string> {
  const env = { ...context.environment, LC_ALL: 'C.UTF-8' };
  return runProgram({ command, args, cwd, env, signal: context.signal, faultCode: 'download_failed' });
}
