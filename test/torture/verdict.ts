// Everything is over: what is left must be nothing, and what was done must be right, once.
import { messageOf } from '#sonar/platform/errors.ts';
import { pause } from '#sonar/platform/wait.ts';
import type { CommandRuns } from './command-runs.ts';
import type { Disturbances } from './disturbances.ts';
import type { HelperWatch } from './helper-watch.ts';
import { judgeCommands } from './oracle/command-truth.ts';
import type { Finding } from './oracle/finding.ts';
import { shownSecrets } from './oracle/hidden-text.ts';
import {
  leftInBroker,
  leftInDatabase,
  leftInDirectories,
  leftProcesses,
  leftWorkflows,
} from './oracle/leftovers.ts';
import { judgeScan } from './oracle/scan-truth.ts';
import type { ScanRuns } from './scan-run.ts';
import type { TortureSystem } from './system.ts';

/** What lags behind the end of a scan: acknowledgements, folders, the last pulse, leases of the dead. */
const quietWithinMs = 60_000;
const quietPollMs = 1_000;

export interface Evidence {
  /** Of the run: everything that anybody wrote is below it. */
  directory: string;
  system: TortureSystem;
  scans: ScanRuns;
  runs: CommandRuns;
  helpers: HelperWatch;
  disturbances: Disturbances;
}

export async function judge(
  evidence: Evidence,
  signal: AbortSignal,
): Promise<{ tasks: number; findings: Finding[] }> {
  const { system, scans, runs, helpers, disturbances } = evidence;
  const { database, stack, workerDirectory } = system;
  const findings: Finding[] = [];
  let tasks = 0;
  for (const { planned, id, fault } of scans.all) {
    if (id === undefined) {
      findings.push({
        kind: 'stuck',
        what: `scan ${planned.ref} was never started: ${fault ?? 'no answer'}`,
      });
      continue;
    }
    const truth = await judgeScan(database, planned, id);
    tasks += truth.tasks;
    findings.push(...truth.findings);
  }
  findings.push(
    ...(await untilNothing(signal, async () => [
      ...(await leftInDatabase(database)),
      ...(await leftWorkflows(stack.env)),
      ...leftInDirectories(workerDirectory),
    ])),
  );
  runs.look();
  findings.push(...(await judgeCommands(database, runs.all, disturbances)));
  // Messages that a worker holds show only when it lets go of them.
  await system.stopWorkers();
  findings.push(
    ...(await untilNothing(signal, async () => [
      ...(await leftInBroker(stack.env)),
      ...leftProcesses(workerDirectory),
      ...helpers.left().map((pid): Finding => ({ kind: 'leaked', what: `helper process ${pid} runs on` })),
    ])),
  );
  const hidden = scans.all.flatMap(({ planned }) => planned.hidden ?? []);
  findings.push(...(await shownSecrets(evidence.directory, hidden)));
  return { tasks, findings };
}

/** What is still there after a bounded wait. */
async function untilNothing(signal: AbortSignal, look: () => Promise<Finding[]>): Promise<Finding[]> {
  const until = performance.now() + quietWithinMs;
  for (;;) {
    signal.throwIfAborted();
    const left = await look().catch((error: unknown): Finding[] => [
      { kind: 'leaked', what: `what is left could not be seen: ${messageOf(error)}` },
    ]);
    if (left.length === 0 || performance.now() > until) return left;
    await pause(quietPollMs, signal);
  }
}
