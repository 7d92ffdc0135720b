import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { type LongRunning, stayUntilStopped } from '../long-running.ts';
import type { Run } from '../session.ts';
import { duration, positiveInteger, wordList } from '../word-parsers.ts';

interface StartOptions {
  name: string;
  tags: string[];
  slots: number;
  dir: string;
  drain: number;
  maxLifetime?: number;
  spot: 'auto' | 'on' | 'off';
}

/** Well within the grace that supervisors give. */
const startGraceMs = 5_000;

export function addWorkerStartCommand(worker: Command, run: Run): void {
  worker
    .command('start')
    .description('run commands for scans on this machine, until Ctrl-C')
    .requiredOption('--name <name>', 'unique among the workers')
    .requiredOption('--tags <tags>', 'what it can do, with commas: tags of steps', wordList)
    .option('--slots <n>', 'commands at the same time', positiveInteger, 4)
    .option('--dir <folder>', 'where commands run and files lie', '.sonar/workers')
    .option('--drain <duration>', 'how long a stop waits for what runs', duration, 60_000)
    .option('--max-lifetime <duration>', 'drain and end after so long', duration)
    .addOption(
      new Option('--spot <mode>', "heed EC2's warnings; auto: where the machine is EC2's")
        .choices(['auto', 'on', 'off'])
        .default('auto'),
    )
    .action(({ name, tags, slots, dir, drain, maxLifetime, spot }: StartOptions) =>
      run(async (session) => {
        const environment = session.workerEnvironment();
        const directory = resolve(session.surroundings.workingDirectory, dir);
        const { startTagWorker } = await import('#sonar/roles/tag-worker.ts');
        const start = async (): Promise<LongRunning> => {
          const running = await startTagWorker(
            { name, tags, slots, directory, drainMs: drain, maxLifetimeMs: maxLifetime, spot },
            environment,
          );
          session.hint(`worker ${name} takes tasks of ${tags.join(', ')}, ${slots} at a time`);
          return running;
        };
        return stayUntilStopped(session, start, { startGraceMs, stopAgain: true });
      }),
    );
}
