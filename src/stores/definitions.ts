import type { Definition } from '#sonar/contracts/definition.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface RevisionRow {
  name: string;
  revision: number;
  source_sha256: string;
  files_sha256: string;
  compiled: Definition;
  applied_at: string;
}

export async function lockDefinition(db: Db, workspaceId: string, name: string): Promise<number | undefined> {
  const [row] = await db.rows<{ latest_revision: number }>(sql('definition.lock')`
    select latest_revision from sonar.definition
    where workspace_id = ${workspaceId} and name = ${name} for update`);
  return row?.latest_revision;
}

/** Makes the definition's row, or leaves the one there is; a row made this way has revision 0. */
export async function ensureDefinition(db: Db, workspaceId: string, name: string): Promise<void> {
  await db.execute(sql('definition.ensure')`
    insert into sonar.definition (workspace_id, name, latest_revision) values (${workspaceId}, ${name}, 0)
    on conflict (workspace_id, name) do nothing`);
}

export async function insertRevision(
  db: Db,
  workspaceId: string,
  revision: {
    name: string;
    revision: number;
    source: string;
    sourceSha256: string;
    filesSha256: string;
    compiled: Definition;
  },
): Promise<void> {
  await db.execute(sql('definition.insert_revision')`
    with revision as (
      insert into sonar.definition_revision (workspace_id, name, revision, source, source_sha256, files_sha256, compiled)
      values (${workspaceId}, ${revision.name}, ${revision.revision}, ${revision.source},
              ${revision.sourceSha256}, ${revision.filesSha256}, ${JSON.stringify(revision.compiled)}::jsonb)
      returning workspace_id, name, revision)
    update sonar.definition d set latest_revision = r.revision, deleted_at = null
    from revision r where d.workspace_id = r.workspace_id and d.name = r.name`);
}

export async function latestRevision(
  db: Db,
  workspaceId: string,
  name: string,
): Promise<RevisionRow | undefined> {
  const [row] = await db.rows<RevisionRow>(sql('definition.latest')`
    select r.name, r.revision, r.source_sha256, r.files_sha256, r.compiled, r.applied_at
    from sonar.definition d
    join sonar.definition_revision r on r.workspace_id = d.workspace_id and r.name = d.name and r.revision = d.latest_revision
    where d.workspace_id = ${workspaceId} and d.name = ${name} and d.deleted_at is null`);
  return row;
}

/**
 * The newest revision there is, of a deleted definition too: its last one stays in force for the scans that run.
 */
export async function newestRevision(db: Db, workspaceId: string, name: string): Promise<number | undefined> {
  const [row] = await db.rows<{ latest_revision: number }>(sql('definition.newest')`
    select latest_revision from sonar.definition where workspace_id = ${workspaceId} and name = ${name}`);
  return row?.latest_revision;
}

/** False: there is no such definition, or it was deleted before. Its revisions stay. */
export async function deleteDefinition(db: Db, workspaceId: string, name: string): Promise<boolean> {
  const deleted = await db.execute(sql('definition.delete')`
    update sonar.definition set deleted_at = clock_timestamp()
    where workspace_id = ${workspaceId} and name = ${name} and deleted_at is null`);
  return deleted === 1;
}

export async function findRevision(
  db: Db,
  workspaceId: string,
  name: string,
  revision: number,
): Promise<RevisionRow | undefined> {
  const [row] = await db.rows<RevisionRow>(sql('definition.revision')`
    select name, revision, source_sha256, files_sha256, compiled, applied_at from sonar.definition_revision
    where workspace_id = ${workspaceId} and name = ${name} and revision = ${revision}`);
  return row;
}

/** In order of name, after `after`. */
export function listDefinitions(
  db: Db,
  workspaceId: string,
  after: string,
  limit: number,
): Promise<RevisionRow[]> {
  return db.rows(sql('definition.list')`
    select r.name, r.revision, r.source_sha256, r.files_sha256, r.compiled, r.applied_at
    from sonar.definition d
    join sonar.definition_revision r on r.workspace_id = d.workspace_id and r.name = d.name and r.revision = d.latest_revision
    where d.workspace_id = ${workspaceId} and d.deleted_at is null and d.name > ${after}
    order by d.name limit ${limit}`);
}
