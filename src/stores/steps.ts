import type { ScanId } from '#sonar/contracts/ids.ts';
import type { StepState } from '#sonar/contracts/states.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface StepRow {
  step: string;
  ordinal: number;
  state: StepState;
  /** Whether its work may be planned: its All needs are settled and what it rests on is pinned. */
  activated: boolean;
  sources_id: string | null;
  /** Id after which finished parents are still to be looked at; null: all were. */
  backfill_after: string | null;
  refused: number;
  starved_since: string | null;
  missing_secrets: string[];
  note: string | null;
}

export async function insertSteps(
  db: Db,
  scan: { scanId: ScanId; workspaceId: string },
  steps: readonly string[],
): Promise<void> {
  await db.execute(sql('step.insert')`
    insert into sonar.scan_step (scan_id, workspace_id, step, ordinal, state)
    select ${scan.scanId}, ${scan.workspaceId}, step, ordinal, 'open'
    from unnest(${steps}::text[]) with ordinality as new (step, ordinal)`);
}

export function stepsOfScan(db: Db, scanId: ScanId): Promise<StepRow[]> {
  return db.rows(sql('step.of_scan')`
    select step, ordinal, state, pins is not null as activated, sources_id, backfill_after, refused, starved_since,
           missing_secrets, note
    from sonar.scan_step where scan_id = ${scanId} order by ordinal`);
}

/** Pins what the step rests on; 0 rows: it was activated already. */
export function activateStep(
  db: Db,
  scanId: ScanId,
  step: string,
  pinned: { pins: unknown; sourcesId: string | null; backfillAfter: string | null },
): Promise<number> {
  return db.execute(sql('step.activate')`
    update sonar.scan_step
    set pins = ${JSON.stringify(pinned.pins)}::jsonb, sources_id = ${pinned.sourcesId},
        backfill_after = ${pinned.backfillAfter}
    where scan_id = ${scanId} and step = ${step} and pins is null`);
}

export async function moveBackfill(
  db: Db,
  scanId: ScanId,
  step: string,
  after: string | null,
): Promise<void> {
  await db.execute(sql('step.move_backfill')`
    update sonar.scan_step set backfill_after = ${after} where scan_id = ${scanId} and step = ${step}`);
}

export async function closeStep(
  db: Db,
  scanId: ScanId,
  step: string,
  state: 'settled' | 'blocked',
  note: string | null,
): Promise<void> {
  await db.execute(sql('step.close')`
    update sonar.scan_step set state = ${state}, note = coalesce(${note}::text, note)
    where scan_id = ${scanId} and step = ${step} and state = 'open'`);
}

export async function addRefused(
  db: Db,
  scanId: ScanId,
  step: string,
  refused: number,
  note: string | null,
): Promise<void> {
  await db.execute(sql('step.add_refused')`
    update sonar.scan_step set refused = refused + ${refused}, note = coalesce(${note}::text, note)
    where scan_id = ${scanId} and step = ${step}`);
}

export async function noteStep(db: Db, scanId: ScanId, step: string, note: string): Promise<void> {
  await db.execute(sql('step.note')`
    update sonar.scan_step set note = ${note} where scan_id = ${scanId} and step = ${step}`);
}

/** What the step's Pending tasks wait for; none: nothing any more. */
export async function markMissingSecrets(
  db: Db,
  scanId: ScanId,
  step: string,
  names: readonly string[],
): Promise<void> {
  await db.execute(sql('step.mark_missing_secrets')`
    update sonar.scan_step set missing_secrets = ${names}::text[]
    where scan_id = ${scanId} and step = ${step}`);
}

/** Marks the steps that no eligible worker serves, and unmarks the others; answers what changed. */
export function markStarved(
  db: Db,
  starved: readonly { scanId: string; step: string }[],
  scanIds: readonly string[],
): Promise<{ scan_id: ScanId; step: string; starved: boolean }[]> {
  return db.rows(sql('step.mark_starved')`
    with starved as (
      select * from unnest(${starved.map((row) => row.scanId)}::uuid[], ${starved.map((row) => row.step)}::text[]) as s (scan_id, step))
    update sonar.scan_step t
    set starved_since = case when s.step is null then null else clock_timestamp() end
    from sonar.scan_step o left join starved s on s.scan_id = o.scan_id and s.step = o.step
    where t.scan_id = o.scan_id and t.step = o.step and o.scan_id = any(${scanIds}::uuid[])
      and (o.starved_since is null) <> (s.step is null)
    returning t.scan_id, t.step, t.starved_since is not null as starved`);
}
