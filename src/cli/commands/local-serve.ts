import type { Command } from 'commander';
import { type LongRunning, stayUntilStopped } from '../long-running.ts';
import type { Run } from '../session.ts';
import { portNumber, wordList } from '../word-parsers.ts';

interface ServeOptions {
  role: string[];
  host: string;
  port?: number;
}

/** Well within the grace that supervisors give. */
const startGraceMs = 5_000;

/** Which roles there are, and what `all` stands for, is known to `roles/serve.ts`. */
export function addServeCommand(program: Command, run: Run): void {
  program
    .command('serve')
    .description('run roles of the control plane in this process')
    .requiredOption('--role <roles>', 'api, reconciler, finalizer, publisher with commas, or all', wordList)
    .option('--host <address>', 'where the api listens', '127.0.0.1')
    .option('--port <n>', 'port of the api; 0 takes a free one', portNumber)
    .action(({ role, host, port }: ServeOptions) =>
      run(async (session) => {
        const { serve } = await import('#sonar/roles/serve.ts');
        const { environment } = session.surroundings;
        const start = async (): Promise<LongRunning> => {
          const served = await serve(role, environment, { host, ...(port === undefined ? {} : { port }) });
          session.answer({ roles: role, addresses: served.addresses }, ({ addresses }) => [
            ...Object.entries(addresses).map(([name, address]) => `${name} at ${address}`),
            `serving ${role.join(', ')}`,
          ]);
          return served;
        };
        return stayUntilStopped(session, start, { startGraceMs });
      }),
    );
}
