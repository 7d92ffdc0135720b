import type { Scope } from '#sonar/contracts/definition.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { ScanStatus } from '#sonar/contracts/states.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface ScanRow {
  scan_id: ScanId;
  workspace_id: string;
  name: string;
  request_sha256: string;
  definition_name: string;
  definition_revision: number;
  pinned: boolean;
  failing: boolean;
  status: ScanStatus;
  generation: number;
  reason: string | null;
  created_at: string;
  finished_at: string | null;
  last_tick_at: string | null;
}

export interface NewScan {
  scanId: ScanId;
  workspaceId: string;
  name: string;
  clientKey: string | null;
  requestSha256: string;
  definitionName: string;
  definitionRevision: number;
  pinned: boolean;
  scope: Scope;
}

/** False where the client key is taken: the scan that has it is found by {@link findScanByKey}. */
export async function insertScan(db: Db, scan: NewScan): Promise<boolean> {
  const inserted = await db.execute(sql('scan.insert')`
    insert into sonar.scan (scan_id, workspace_id, name, client_key, request_sha256, definition_name,
                            definition_revision, pinned, scope, status)
    values (${scan.scanId}, ${scan.workspaceId}, ${scan.name}, ${scan.clientKey}, ${scan.requestSha256},
            ${scan.definitionName}, ${scan.definitionRevision}, ${scan.pinned},
            ${JSON.stringify(scan.scope)}::jsonb, 'Running')
    on conflict (workspace_id, client_key) do nothing`);
  return inserted === 1;
}

export async function insertScanInput(
  db: Db,
  scan: { scanId: ScanId; workspaceId: string },
  input: { name: string; type: string; content: string; fileSha256: string | null },
): Promise<void> {
  await db.execute(sql('scan.insert_input')`
    insert into sonar.scan_input (scan_id, workspace_id, name, type, content, file_sha256)
    values (${scan.scanId}, ${scan.workspaceId}, ${input.name}, ${input.type}, ${input.content}, ${input.fileSha256})`);
}

/** What the scan was given or has taken by default, without the content. */
export function scanInputTypes(
  db: Db,
  scanId: ScanId,
): Promise<{ name: string; type: string; stored: boolean }[]> {
  return db.rows(sql('scan.input_types')`
    select name, type, file_sha256 is not null as stored from sonar.scan_input where scan_id = ${scanId} order by name`);
}

export function scanInputs(
  db: Db,
  scanId: ScanId,
  names: readonly string[],
): Promise<{ name: string; type: string; content: string; file_sha256: string | null }[]> {
  return db.rows(sql('scan.inputs')`
    select name, type, content, file_sha256 from sonar.scan_input
    where scan_id = ${scanId} and name = any(${names}::text[]) order by name`);
}

/** A scan that is being deleted is no scan any more, here and for {@link lockScan}. */
export async function findScan(db: Db, scanId: ScanId): Promise<ScanRow | undefined> {
  const [row] = await db.rows<ScanRow>(sql('scan.find')`
    select scan_id, workspace_id, name, request_sha256, definition_name, definition_revision, pinned, failing,
           status, generation, reason, created_at, finished_at, last_tick_at
    from sonar.scan where scan_id = ${scanId} and deleting_at is null`);
  return row;
}

export async function findScanByKey(
  db: Db,
  workspaceId: string,
  clientKey: string,
): Promise<ScanRow | undefined> {
  const [row] = await db.rows<ScanRow>(sql('scan.find_by_key')`
    select scan_id, workspace_id, name, request_sha256, definition_name, definition_revision, pinned, failing,
           status, generation, reason, created_at, finished_at, last_tick_at
    from sonar.scan where workspace_id = ${workspaceId} and client_key = ${clientKey}`);
  return row;
}

/** Apart from the row, since it may be large; it never changes. */
export async function scanScope(db: Db, scanId: ScanId): Promise<Scope> {
  const [row] = await db.rows<{ scope: Scope }>(sql('scan.scope')`
    select scope from sonar.scan where scan_id = ${scanId}`);
  return row?.scope ?? { allow: [], deny: [] };
}

/** Newest first; `after` is the last id of the page before. */
export function listScans(
  db: Db,
  workspaceId: string,
  filter: { status: ScanStatus | null; after: string | null; limit: number },
): Promise<ScanRow[]> {
  return db.rows(sql('scan.list')`
    select scan_id, workspace_id, name, request_sha256, definition_name, definition_revision, pinned, failing,
           status, generation, reason, created_at, finished_at, last_tick_at
    from sonar.scan
    where workspace_id = ${workspaceId} and deleting_at is null
      and (${filter.status}::text is null or status = ${filter.status}::text)
      and (${filter.after}::uuid is null or scan_id < ${filter.after}::uuid)
    order by scan_id desc limit ${filter.limit}`);
}

/** A statement of its own, before anything is read that the decision depends on. */
export async function lockScan(db: Db, scanId: ScanId): Promise<ScanRow | undefined> {
  const [row] = await db.rows<ScanRow>(sql('scan.lock')`
    select scan_id, workspace_id, name, request_sha256, definition_name, definition_revision, pinned, failing,
           status, generation, reason, created_at, finished_at, last_tick_at
    from sonar.scan where scan_id = ${scanId} and deleting_at is null for no key update`);
  return row;
}

/**
 * Waits for placement passes that have taken tasks of the scan, and lets none take any before the transaction ends.
 * Stronger than {@link lockScan}, which passes do not feel: planning must not hold up placement.
 */
export async function keepPassesOut(db: Db, scanId: ScanId): Promise<void> {
  await db.rows(sql('scan.keep_passes_out')`select from sonar.scan where scan_id = ${scanId} for update`);
}

/** Of a scan that is locked. */
export async function recordRevision(db: Db, scanId: ScanId, revision: number): Promise<void> {
  await db.execute(sql('scan.take_revision')`
    update sonar.scan set definition_revision = ${revision} where scan_id = ${scanId} and not pinned`);
}

/** Scans that an edit of their definition concerns. */
export function scansOfDefinition(
  db: Db,
  workspaceId: string,
  name: string,
  limit: number,
): Promise<{ scan_id: ScanId }[]> {
  return db.rows(sql('scan.of_definition')`
    select scan_id from sonar.scan
    where workspace_id = ${workspaceId} and definition_name = ${name} and not pinned
      and status in ('Running', 'Paused')
    limit ${limit}`);
}

export async function recordTick(db: Db, scanId: ScanId): Promise<void> {
  await db.execute(sql('scan.tick')`
    update sonar.scan set last_tick_at = clock_timestamp() where scan_id = ${scanId}`);
}

/** Guarded by the states the change is legal from; 0 rows: somebody else was first. */
export function changeScanStatus(
  db: Db,
  scanId: ScanId,
  change: { from: ScanStatus[]; to: ScanStatus; finished: boolean; reason: string | null },
): Promise<number> {
  return db.execute(sql('scan.change_status')`
    update sonar.scan
    set status = ${change.to}, reason = coalesce(${change.reason}::text, reason),
        finished_at = case when ${change.finished}::boolean then clock_timestamp() end
    where scan_id = ${scanId} and status = any(${change.from}::text[])`);
}

/** Not to be mended: what is open will be cancelled, and then the scan is Failed. */
export async function failScanRow(db: Db, scanId: ScanId, reason: string): Promise<void> {
  await db.execute(sql('scan.fail')`
    update sonar.scan set status = 'Cancelling', failing = true, reason = ${reason}
    where scan_id = ${scanId} and status in ('Running', 'Paused')`);
}

/** Open scans whose workflow has not ticked for `silentMs`; from PostgreSQL, never from visibility. */
export function silentScans(db: Db, silentMs: number, limit: number): Promise<ScanRow[]> {
  return db.rows(sql('scan.silent')`
    select scan_id, workspace_id, name, request_sha256, definition_name, definition_revision, pinned, failing,
           status, generation, reason, created_at, finished_at, last_tick_at
    from sonar.scan
    where status in ('Running', 'Paused', 'Cancelling')
      and coalesce(last_tick_at, created_at) < clock_timestamp() - ${silentMs} * interval '1 millisecond'
    order by last_tick_at nulls first limit ${limit}`);
}
