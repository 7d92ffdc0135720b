import type { StepPins } from '#sonar/contracts/definition.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { StepState } from '#sonar/contracts/states.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface StepRow {
  step: string;
  ordinal: number;
  state: StepState;
  /** Whether its work may be planned: its All needs are settled and what it rests on is pinned. */
  begun: boolean;
  /** The newest revision that the scan has taken of it; null: none yet. */
  revision: number | null;
  /** What its first task has fixed. */
  pins: StepPins | null;
  /** It is no longer in the definition: nothing more is made or placed. */
  removed: boolean;
  /** What of a newer revision was not taken, and why. */
  revision_note: string | null;
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
  revision: number,
): Promise<void> {
  await db.execute(sql('step.insert')`
    insert into sonar.scan_step (scan_id, workspace_id, step, ordinal, state, revision)
    select ${scan.scanId}, ${scan.workspaceId}, step, ordinal, 'open', ${revision}
    from unnest(${steps}::text[]) with ordinality as new (step, ordinal)`);
}

export function stepsOfScan(db: Db, scanId: ScanId): Promise<StepRow[]> {
  return db.rows(sql('step.of_scan')`
    select step, ordinal, state, begun, revision, pins, removed, revision_note, sources_id, backfill_after, refused,
           starved_since, missing_secrets, note
    from sonar.scan_step where scan_id = ${scanId} order by ordinal`);
}

/** Fixes what the step rests on, and its pins where its first task comes with it; 0 rows: it had begun already. */
export function beginStep(
  db: Db,
  scanId: ScanId,
  step: string,
  rest: { pins: StepPins | null; sourcesId: string | null; backfillAfter: string | null },
): Promise<number> {
  return db.execute(sql('step.begin')`
    update sonar.scan_step
    set begun = true, pins = ${rest.pins === null ? null : JSON.stringify(rest.pins)}::jsonb,
        sources_id = ${rest.sourcesId}, backfill_after = ${rest.backfillAfter}
    where scan_id = ${scanId} and step = ${step} and not begun`);
}

/** With the first task of a step that had begun without one. */
export function pinStep(db: Db, scanId: ScanId, step: string, pins: StepPins): Promise<number> {
  return db.execute(sql('step.pin')`
    update sonar.scan_step set pins = ${JSON.stringify(pins)}::jsonb
    where scan_id = ${scanId} and step = ${step} and begun and pins is null`);
}

/**
 * Those of the steps that are still pinned as given. One that was removed, began anew, or was pinned by another revision, is not:
 * what was made by the pins before must not become its.
 */
export async function stepsPinnedAs(
  db: Db,
  scanId: ScanId,
  pins: ReadonlyMap<string, StepPins>,
): Promise<Set<string>> {
  const given = [...pins].map(([step, pinned]) => ({ step, pins: pinned }));
  const rows = await db.rows<{ step: string }>(sql('step.pinned_as')`
    select p.step from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g (step text, pins jsonb)
    join sonar.scan_step p on p.scan_id = ${scanId} and p.step = g.step and p.pins = g.pins and not p.removed`);
  return new Set(rows.map((row) => row.step));
}

export interface TakenStep {
  step: string;
  revision: number | null;
  removed: boolean;
  note: string | null;
  /** Not begun yet, and what it needs is another. */
  restarts: boolean;
}

/**
 * What a scan has taken of a newer revision. Steps that restart are as if they had never begun; one that was never
 * taken and is gone again is nobody's fault.
 */
export function takeSteps(db: Db, scanId: ScanId, steps: readonly TakenStep[]): Promise<number> {
  return db.execute(sql('step.take')`
    update sonar.scan_step p
    set revision = t.revision, removed = t.removed, revision_note = t.note,
        state = case when t.restarts then 'open' when t.removed and t.revision is null then 'settled' else p.state end,
        note = case when t.restarts then null else p.note end,
        begun = p.begun and not t.restarts,
        sources_id = case when t.restarts then null else p.sources_id end,
        backfill_after = case when t.restarts or t.removed then null else p.backfill_after end
    from jsonb_to_recordset(${JSON.stringify(steps)}::jsonb)
      as t (step text, revision integer, removed boolean, note text, restarts boolean)
    where p.scan_id = ${scanId} and p.step = t.step`);
}

/** Steps that a newer revision brings, after those that there are; what cannot be taken is blocked. */
export function addSteps(
  db: Db,
  scan: { scanId: ScanId; workspaceId: string },
  steps: readonly Pick<TakenStep, 'step' | 'revision' | 'note'>[],
): Promise<number> {
  return db.execute(sql('step.add')`
    insert into sonar.scan_step (scan_id, workspace_id, step, ordinal, state, revision, revision_note)
    select ${scan.scanId}, ${scan.workspaceId}, t.new->>'step',
           t.place + (select coalesce(max(ordinal), 0) from sonar.scan_step where scan_id = ${scan.scanId}),
           case when t.new->>'revision' is null then 'blocked' else 'open' end, (t.new->>'revision')::integer, t.new->>'note'
    from jsonb_array_elements(${JSON.stringify(steps)}::jsonb) with ordinality as t (new, place)`);
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
