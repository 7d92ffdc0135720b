import { join } from 'node:path';
import type { DataDirectory } from './data-directory.ts';
import type { ProcessGroup } from './process-group.ts';

/** A process of Sonar's own that runs on the stack. */
export interface RoleSpec {
  name: string;
  command: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  cwd?: string;
  /** Whether it serves; asked until it says true. Without it, running is enough. Must be bounded itself. */
  ready?: () => Promise<boolean>;
  /** Default 60 s. */
  readyWithinMs?: number;
  /** From SIGTERM until SIGKILL goes to its group; default 20 s. */
  graceMs?: number;
}

export interface SupervisedProcess {
  readonly name: string;
  /** Undefined between two lives. */
  readonly pid: number | undefined;
  /** How often it ended by itself and was started again. */
  readonly restarts: number;
  readonly log: string;
  /** Stops it for good; the stack goes on. */
  stop(): Promise<void>;
}

const standardReadyWithinMs = 60_000;
const standardGraceMs = 20_000;

/** Starts a role in the group and resolves when it is ready. Throws `service_failed` with the end of its log. */
export async function superviseRole(
  spec: RoleSpec,
  roles: ProcessGroup,
  directory: DataDirectory,
  signal: AbortSignal,
): Promise<SupervisedProcess> {
  const log = join(directory.logs, `${spec.name}.log`);
  const managed = await roles.launch(
    {
      name: spec.name,
      kind: 'role',
      litter: [],
      waysOut: [],
      command: spec.command,
      args: spec.args,
      env: spec.env,
      cwd: spec.cwd ?? process.cwd(),
      log,
      stopSignal: 'SIGTERM',
      graceMs: spec.graceMs ?? standardGraceMs,
      ready: async () => {
        if (spec.ready && !(await spec.ready())) throw new Error(`${spec.name} says it is not ready`);
      },
      readyWithinMs: spec.readyWithinMs ?? standardReadyWithinMs,
    },
    signal,
  );
  return {
    name: spec.name,
    log,
    get pid() {
      return managed.pid;
    },
    get restarts() {
      return managed.restarts;
    },
    stop: () => roles.stopOne(managed),
  };
}
