import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface SecretRow {
  name: string;
  updated_at: string;
  updated_by: string;
}

export async function upsertSecret(
  db: Db,
  workspaceId: string,
  secret: { name: string; keyId: string; sealed: string; updatedBy: string },
): Promise<SecretRow> {
  const [row] = await db.rows<SecretRow>(sql('secret.upsert')`
    insert into sonar.secret (workspace_id, name, key_id, sealed, updated_by)
    values (${workspaceId}, ${secret.name}, ${secret.keyId}, ${secret.sealed}, ${secret.updatedBy})
    on conflict (workspace_id, name) do update
    set key_id = excluded.key_id, sealed = excluded.sealed, updated_by = excluded.updated_by,
        updated_at = clock_timestamp()
    returning name, updated_at, updated_by`);
  return row as SecretRow;
}

/** In order of name, after `after`. Never the values. */
export function listSecrets(db: Db, workspaceId: string, after: string, limit: number): Promise<SecretRow[]> {
  return db.rows(sql('secret.list')`
    select name, updated_at, updated_by from sonar.secret
    where workspace_id = ${workspaceId} and name > ${after} order by name limit ${limit}`);
}

/** Those of the given names that are not set. */
export async function missingSecrets(
  db: Db,
  workspaceId: string,
  names: readonly string[],
): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql('secret.missing')`
    select wanted.name from unnest(${names}::text[]) as wanted (name)
    where not exists (select from sonar.secret s where s.workspace_id = ${workspaceId} and s.name = wanted.name)
    order by wanted.name`);
  return rows.map((row) => row.name);
}

export function sealedSecrets(
  db: Db,
  workspaceId: string,
  names: readonly string[],
): Promise<{ name: string; key_id: string; sealed: string }[]> {
  return db.rows(sql('secret.sealed')`
    select name, key_id, sealed from sonar.secret
    where workspace_id = ${workspaceId} and name = any(${names}::text[])`);
}
