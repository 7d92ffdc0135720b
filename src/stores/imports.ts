import type { ReadSpec } from '#sonar/contracts/definition.ts';
import type { ClaimToken, ImportId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export type ImportStatus = 'due' | 'done' | 'failed';

export interface ImportRow {
  import_id: ImportId;
  workspace_id: string;
  name: string;
  read: ReadSpec;
  imported_by: string;
  status: ImportStatus;
  events: number;
  records: number;
  bad_records: number;
  warnings: string[];
  error: string | null;
  created_at: string;
  finished_at: string | null;
  accepted_sequence: number;
  attempts: number;
  object_key: string;
  size: number;
  sha256: string;
}

export interface NewImport {
  importId: ImportId;
  workspaceId: string;
  sha256: string;
  read: ReadSpec;
  readSha256: string;
  name: string;
  importedBy: string;
}

/** False: the same file was read in the same way before. */
export async function insertImport(db: Db, row: NewImport): Promise<boolean> {
  const inserted = await db.execute(sql('import.insert')`
    insert into sonar.inventory_import (import_id, workspace_id, sha256, read, read_sha256, name, imported_by, accepted_sequence, status)
    values (${row.importId}, ${row.workspaceId}, ${row.sha256}, ${JSON.stringify(row.read)}::jsonb, ${row.readSha256},
            ${row.name}, ${row.importedBy}, nextval('sonar.acceptance_sequence'), 'due')
    on conflict (workspace_id, sha256, read_sha256) do nothing`);
  return inserted === 1;
}

export async function findImport(
  db: Db,
  which: { workspaceId: string; sha256: string; readSha256: string },
): Promise<ImportRow | undefined> {
  const [row] = await db.rows<ImportRow>(sql('import.find')`
    select i.import_id, i.workspace_id, i.name, i.read, i.imported_by, i.status, i.events, i.records, i.bad_records, i.warnings,
           i.error, i.created_at, i.finished_at, i.accepted_sequence, i.attempts, f.object_key, f.size, f.sha256
    from sonar.inventory_import i join sonar.stored_file f on f.workspace_id = i.workspace_id and f.sha256 = i.sha256
    where i.workspace_id = ${which.workspaceId} and i.sha256 = ${which.sha256} and i.read_sha256 = ${which.readSha256}`);
  return row;
}

/** The one that waits longest with nobody at it; what was begun a moment ago is its beginner's. */
export async function abandonedImport(db: Db, forMs: number): Promise<ImportRow | undefined> {
  const [row] = await db.rows<ImportRow>(sql('import.abandoned')`
    select i.import_id, i.workspace_id, i.name, i.read, i.imported_by, i.status, i.events, i.records, i.bad_records, i.warnings,
           i.error, i.created_at, i.finished_at, i.accepted_sequence, i.attempts, f.object_key, f.size, f.sha256
    from sonar.inventory_import i join sonar.stored_file f on f.workspace_id = i.workspace_id and f.sha256 = i.sha256
    where i.status = 'due'
      and coalesce(i.claim_expires_at, i.created_at) < clock_timestamp() - ${forMs} * interval '1 millisecond'
    order by i.created_at limit 1`);
  return row;
}

/**
 * Counts the attempt at the claim, so a crash counts too; progress sets it back. The answer says where to go on.
 * Undefined: it is over, or somebody is at it.
 */
export async function claimImport(
  db: Db,
  importId: ImportId,
  claim: { token: ClaimToken; leaseMs: number },
): Promise<{ events: number; attempts: number } | undefined> {
  const [row] = await db.rows<{ events: number; attempts: number }>(sql('import.claim')`
    update sonar.inventory_import
    set claim_token = ${claim.token}, claim_expires_at = clock_timestamp() + ${claim.leaseMs} * interval '1 millisecond',
        attempts = attempts + 1
    where import_id = ${importId} and status = 'due'
      and (claim_token is null or claim_expires_at < clock_timestamp())
    returning events, attempts`);
  return row;
}

export interface ImportProgress {
  /** In all. */
  events: number;
  records: number;
  badRecords: number;
  warnings: readonly string[];
}

/** In the transaction of what was read; 0 rows: the claim was lost, and nothing of it may commit. */
export function advanceImport(
  db: Db,
  importId: ImportId,
  claim: { token: ClaimToken; leaseMs: number },
  progress: ImportProgress,
): Promise<number> {
  return db.execute(sql('import.advance')`
    update sonar.inventory_import
    set events = ${progress.events}, records = records + ${progress.records}, bad_records = bad_records + ${progress.badRecords},
        warnings = (warnings || ${progress.warnings}::text[])[1:20], attempts = 0,
        claim_expires_at = clock_timestamp() + ${claim.leaseMs} * interval '1 millisecond'
    where import_id = ${importId} and status = 'due' and claim_token = ${claim.token} and claim_expires_at > clock_timestamp()`);
}

/** Others may go on at once; an attempt that does not count is given back. */
export function releaseImport(
  db: Db,
  importId: ImportId,
  token: ClaimToken,
  { countsAttempt }: { countsAttempt: boolean },
): Promise<number> {
  return db.execute(sql('import.release')`
    update sonar.inventory_import
    set claim_token = null, claim_expires_at = clock_timestamp(),
        attempts = greatest(attempts - case when ${countsAttempt}::boolean then 0 else 1 end, 0)
    where import_id = ${importId} and claim_token = ${token} and status = 'due'`);
}

/** From nothing: what is in the inventory already is not written twice, but counted again. False: it has not failed. */
export async function reopenImport(db: Db, importId: ImportId): Promise<boolean> {
  const reopened = await db.execute(sql('import.reopen')`
    update sonar.inventory_import
    set status = 'due', finished_at = null, error = null, attempts = 0, events = 0, records = 0, bad_records = 0, warnings = '{}'
    where import_id = ${importId} and status = 'failed'`);
  return reopened === 1;
}

export function finishImport(
  db: Db,
  importId: ImportId,
  token: ClaimToken,
  end: { status: 'done' | 'failed'; error: string | null },
): Promise<number> {
  return db.execute(sql('import.finish')`
    update sonar.inventory_import
    set status = ${end.status}, error = ${end.error}, finished_at = clock_timestamp(), claim_token = null, claim_expires_at = null
    where import_id = ${importId} and claim_token = ${token} and status = 'due' and claim_expires_at > clock_timestamp()`);
}

export async function importTotals(
  db: Db,
  importId: ImportId,
): Promise<{ records: number; bad_records: number; first: string | null }> {
  const [row] = await db.rows<{ records: number; bad_records: number; first: string | null }>(sql(
    'import.totals',
  )`
    select records, bad_records, warnings[1] as first from sonar.inventory_import where import_id = ${importId}`);
  return row ?? { records: 0, bad_records: 0, first: null };
}
