import type { ExecutorId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export async function insertExecutor(
  db: Db,
  executor: {
    executorId: ExecutorId;
    applicationName: string;
    applicationVersion: string;
    build: string;
    roles: readonly string[];
    host: string;
    pid: number;
    leaseMs: number;
  },
): Promise<void> {
  await db.execute(sql('executor.insert')`
    insert into workflow_coordination.executor
      (executor_id, application_name, application_version, build, roles, host, pid, state, heartbeat_at, expires_at)
    values (${executor.executorId}, ${executor.applicationName}, ${executor.applicationVersion}, ${executor.build},
            ${executor.roles}, ${executor.host}, ${executor.pid}, 'active', clock_timestamp(),
            clock_timestamp() + ${executor.leaseMs} * interval '1 millisecond')`);
}

/** By the database's clock; a lease that is expired or no longer active is never renewed (0 rows). */
export function renewExecutor(db: Db, executorId: ExecutorId, leaseMs: number): Promise<number> {
  return db.execute(sql('executor.renew')`
    update workflow_coordination.executor
    set heartbeat_at = clock_timestamp(), expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    where executor_id = ${executorId} and state = 'active' and expires_at > clock_timestamp()`);
}

/** An orderly end; the row stays as a tombstone. */
export function releaseExecutor(db: Db, executorId: ExecutorId): Promise<number> {
  return db.execute(sql('executor.release')`
    update workflow_coordination.executor set state = 'released', expires_at = clock_timestamp()
    where executor_id = ${executorId} and state = 'active'`);
}
