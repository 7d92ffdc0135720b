import { CommandLine } from './command-line.ts';
import { problem, ScriptedApi } from './scripted-api.ts';

/** A command line whose api answers what the test scripts, and nothing before that; call it outside of any test. */
export function useScriptedCli(): { readonly api: ScriptedApi; readonly cli: CommandLine } {
  const parts = {} as { api: ScriptedApi; cli: CommandLine };
  beforeEach(async () => {
    parts.api = await new ScriptedApi(() => problem(404, 'not_found', 'nothing scripted')).start();
    parts.cli = new CommandLine();
    parts.cli.environment = { SONAR_API_URL: parts.api.url, SONAR_TOKEN: 'secret-token' };
  });
  afterEach(async () => {
    await parts.api.stop();
    parts.cli.remove();
  });
  return parts;
}
