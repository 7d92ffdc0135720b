import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface SettlementRow {
  open_steps: boolean;
  open_tasks: boolean;
  open_expansions: boolean;
  plan_due: boolean;
  in_flight: boolean;
  unread: boolean;
  poisoned: boolean;
  blocked: boolean;
}

/** Everything that decides whether a scan is over, in one statement, so that no two answers contradict. */
export async function settlementOf(db: Db, scanId: ScanId): Promise<SettlementRow> {
  const [row] = await db.rows<SettlementRow>(sql('settlement.of_scan')`
    with steps as (
      select s.step, s.state,
        -- A retry or a repair that is not carried out yet is open work too.
        s.retry_until is not null or s.voiding
        or exists (select from sonar.task t where t.scan_id = s.scan_id and t.step = s.step and t.superseded_at is null
                and (t.status in ('Pending', 'Published', 'Running') or not t.finalized)) as open_tasks
      from sonar.scan_step s where s.scan_id = ${scanId})
    select coalesce(bool_or(state = 'open'), false) as open_steps,
      coalesce(bool_or(open_tasks), false) as open_tasks,
      exists (select from sonar.expansion where scan_id = ${scanId} and done_at is null) as open_expansions,
      exists (select from sonar.task where scan_id = ${scanId} and plan_due) as plan_due,
      exists (select from sonar.attempt a where a.scan_id = ${scanId} and a.ended_at is null) as in_flight,
      exists (select from sonar.finalization where scan_id = ${scanId} and status = 'due') as unread,
      exists (select from sonar.finalization f join sonar.task t on t.task_id = f.task_id and t.superseded_at is null
              where f.scan_id = ${scanId} and f.status = 'poisoned') as poisoned,
      coalesce(bool_or(state = 'blocked'), false) as blocked
    from steps`);
  return row as SettlementRow;
}
