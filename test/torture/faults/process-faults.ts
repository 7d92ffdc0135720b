// Processes of Sonar that are killed, stopped or asked to go.
import { pause } from '#sonar/platform/wait.ts';
import {
  helperOf,
  type Member,
  type RoleKind,
  signalProcess,
  stopFor,
  treeOf,
  uptimeSeconds,
} from '../members.ts';
import { chosen, type PlannedFault } from '../schedule.ts';
import { executorLeaseMs } from '../settings.ts';
import { type Fault, type FaultContext, lasting } from './fault-context.ts';

const workersOf = ({ system }: FaultContext): Member[] =>
  system.members.filter(({ kind }) => kind === 'worker');
const rolesOf = ({ system }: FaultContext): Member[] =>
  system.members.filter(({ kind }) => kind !== 'worker');

/** A process that is killed is nobody's business any more when its successor has registered: some seconds. */
const killLastsMs = 2_000;

export const killRole =
  (kind: RoleKind): Fault =>
  async (context, planned) => {
    const role = chosen(
      context.system.members.filter((member) => member.kind === kind),
      planned.target,
    );
    return kill(role.name, [role.process.pid]);
  };

export const killWorker: Fault = (context, planned) => {
  const worker = chosen(workersOf(context), planned.target);
  return killOfWorker(context, worker, [worker.process.pid]);
};

export const killHelper: Fault = (context, planned) => {
  const worker = chosen(workersOf(context), planned.target);
  return killOfWorker(context, worker, [helperOf(worker)]);
};

export const killWorkerAndHelper: Fault = (context, planned) => {
  const worker = chosen(workersOf(context), planned.target);
  return killOfWorker(context, worker, [helperOf(worker), worker.process.pid]);
};

async function killOfWorker(
  context: FaultContext,
  worker: Member,
  pids: (number | undefined)[],
): Promise<string> {
  const disturbance = context.disturbances.begin(worker.name, 'killed', uptimeSeconds());
  const detail = kill(worker.name, pids);
  await pause(killLastsMs, context.signal);
  disturbance.until = uptimeSeconds();
  return detail;
}

function kill(name: string, pids: (number | undefined)[]): string {
  const killed = pids.filter((pid) => signalProcess(pid, 'SIGKILL'));
  if (killed.length === 0) throw new Error(`${name} is down already`);
  return `${name}, process ${killed.join(' and ')}`;
}

/** The worker itself; what it started goes on. */
export const stopWorker: Fault = (context, planned) =>
  stopOfWorker(context, chosen(workersOf(context), planned.target), lasting(planned, 1_000, 15_000), false);

/** With its helper and all commands, like a machine that is suspended. */
export const stopMachine: Fault = (context, planned) =>
  stopOfWorker(context, chosen(workersOf(context), planned.target), lasting(planned, 1_000, 15_000), true);

async function stopOfWorker(
  context: FaultContext,
  worker: Member,
  ms: number,
  whole: boolean,
): Promise<string> {
  const { pid } = worker.process;
  if (pid === undefined) throw new Error(`${worker.name} is down already`);
  const pids = whole ? treeOf(pid) : [pid];
  const disturbance = context.disturbances.begin(worker.name, 'stopped', uptimeSeconds());
  await stopped(pids, ms, context.signal);
  disturbance.until = uptimeSeconds() + killLastsMs / 1_000;
  return `${worker.name}, ${pids.length} process(es), ${ms} ms`;
}

/** Shorter than its lease: it only seems slow. */
export const stopRole: Fault = (context, planned) => stopOfRole(context, planned, 500, 8_000);

/** Its claims are given to others meanwhile: what it still writes when it goes on must come to nothing. */
export const stopRolePastLease: Fault = (context, planned) =>
  stopOfRole(context, planned, executorLeaseMs + 1_000, executorLeaseMs + 10_000);

async function stopOfRole(
  context: FaultContext,
  planned: PlannedFault,
  shortestMs: number,
  longestMs: number,
): Promise<string> {
  const role = chosen(rolesOf(context), planned.target);
  const { pid } = role.process;
  if (pid === undefined) throw new Error(`${role.name} is down already`);
  const ms = lasting(planned, shortestMs, longestMs);
  await stopped([pid], ms, context.signal);
  return `${role.name}, ${ms} ms`;
}

async function stopped(pids: number[], ms: number, signal: AbortSignal): Promise<void> {
  const thaw = stopFor(pids, ms);
  await pause(ms, signal);
  for (const pid of pids) signalProcess(pid, 'SIGCONT');
  thaw.kill('SIGKILL');
}

export const drainWorker: Fault = (context, planned) => askToGo(chosen(workersOf(context), planned.target));
export const restartRole: Fault = (context, planned) => askToGo(chosen(rolesOf(context), planned.target));

async function askToGo({ name, process }: Member): Promise<string> {
  const { pid } = process;
  if (!signalProcess(pid, 'SIGTERM')) throw new Error(`${name} is down already`);
  return `${name}, process ${pid}`;
}
