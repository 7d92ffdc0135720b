// One run: the system comes up, scans and faults go on side by side, the faults end, the scans must end, and then
// everything is compared with what is known.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { watchCommandRuns } from './command-runs.ts';
import { createDispatchCopies } from './dispatch-copies.ts';
import { Disturbances } from './disturbances.ts';
import { type DoneFault, runFaults } from './fault-run.ts';
import { watchHelpers } from './helper-watch.ts';
import type { TortureOptions } from './options.ts';
import type { Finding } from './oracle/finding.ts';
import { seededRandom } from './random.ts';
import { runScans } from './scan-run.ts';
import { planScans } from './scans/catalog.ts';
import { Operator } from './scans/operator.ts';
import { planFaults } from './schedule.ts';
import { settled } from './settling.ts';
import { startSystem, type TortureSystem } from './system.ts';
import { judge } from './verdict.ts';

export interface TortureResult {
  faults: readonly DoneFault[];
  scans: number;
  tasks: number;
  findings: readonly Finding[];
}

export interface TortureRun {
  options: TortureOptions;
  /** Of this run alone: data, logs, ledger. */
  directory: string;
  signal: AbortSignal;
  say: (line: string) => void;
  /** Told of each fault as it is over, so that an interrupted run can show them too. */
  onFault: (done: DoneFault) => void;
}

/** Scans are started within this part of the time of the faults: the last ones are to be hurt as well. */
const startsWithin = 0.9;

/** Nothing of it is left running, however it ends. */
export async function torture(run: TortureRun): Promise<TortureResult> {
  const system = await startSystem({
    directory: run.directory,
    random: seededRandom(run.options.seed + 1),
    signal: run.signal,
    onEvent: ({ service, state, detail }) => run.say(`      ${service} ${state} ${detail ?? ''}`.trimEnd()),
  });
  try {
    return await tortureOf(system, run);
  } finally {
    await system.stop();
  }
}

async function tortureOf(system: TortureSystem, run: TortureRun): Promise<TortureResult> {
  const { options, directory, signal, say } = run;
  const random = seededRandom(options.seed);
  const forMs = options.minutes * 60_000;
  const plannedFaults = planFaults(random, forMs, options.kinds);
  const plannedScans = planScans(random, options.scans, forMs * startsWithin);
  const places = {
    ledger: join(directory, 'ledger'),
    marks: join(directory, 'marks'),
    files: join(directory, 'files'),
  };
  mkdirSync(places.marks, { recursive: true });
  const runs = watchCommandRuns(places.ledger);
  const helpers = watchHelpers(system.members);
  const disturbances = new Disturbances();
  const done: DoneFault[] = [];
  const late = new AbortController();
  try {
    const operating = AbortSignal.any([signal, late.signal]);
    const operator = new Operator(system.client, places, operating);
    for (const shape of new Set(plannedScans.map((scan) => scan.shape)))
      if (!shape.ownDefinition) await operator.define(shape, shape.name);
    say(`up: ${plannedScans.length} scans and ${plannedFaults.length} faults in ${options.minutes} min`);
    const scans = runScans(plannedScans, operator, operating, say);
    const copies = createDispatchCopies(system.stack.env.SONAR_AMQP_URL);
    await runFaults(plannedFaults, { system, disturbances, copies, signal }, (fault) => {
      done.push(fault);
      run.onFault(fault);
    });
    system.healLinks();
    say(`the faults are over; ${scans.open()} scans are open`);
    await settled(scans.over, system.database, options.settleMinutes * 60_000, signal);
    late.abort();
    signal.throwIfAborted();
    const verdict = await judge({ directory, system, scans, runs, helpers, disturbances }, signal);
    return { faults: done, scans: scans.all.length, ...verdict };
  } finally {
    late.abort();
    runs.stop();
    helpers.stop();
  }
}
