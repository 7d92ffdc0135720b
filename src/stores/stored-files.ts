// Files that people uploaded, by workspace and hash.
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export async function knownFiles(
  db: Db,
  workspaceId: string,
  digests: readonly string[],
): Promise<Set<string>> {
  const rows = await db.rows<{ sha256: string }>(sql('stored_file.known')`
    select sha256 from sonar.stored_file
    where workspace_id = ${workspaceId} and sha256 = any(${digests}::text[])`);
  return new Set(rows.map((row) => row.sha256));
}

/** The first that is whole stays: its object is the one that is read. */
export function insertStoredFile(
  db: Db,
  workspaceId: string,
  file: { sha256: string; size: number; objectKey: string },
): Promise<number> {
  return db.execute(sql('stored_file.insert')`
    insert into sonar.stored_file (workspace_id, sha256, size, object_key)
    values (${workspaceId}, ${file.sha256}, ${file.size}, ${file.objectKey})
    on conflict (workspace_id, sha256) do nothing`);
}

export interface NewDefinitionFile {
  file: string;
  path: string;
  sha256: string;
}

export async function insertDefinitionFiles(
  db: Db,
  revision: { workspaceId: string; name: string; revision: number },
  files: readonly NewDefinitionFile[],
): Promise<void> {
  await db.execute(sql('stored_file.insert_of_definition')`
    insert into sonar.definition_file (workspace_id, name, revision, file, path, sha256)
    select ${revision.workspaceId}, ${revision.name}, ${revision.revision}, f->>'file', f->>'path', f->>'sha256'
    from jsonb_array_elements(${JSON.stringify(files)}::jsonb) as f`);
}

/** The stored file that a scan was given for an input; none where it was given as a text or a list. */
export async function scanInputFile(
  db: Db,
  scanId: string,
  input: string,
): Promise<{ object_key: string; size: number; sha256: string } | undefined> {
  const [row] = await db.rows<{ object_key: string; size: number; sha256: string }>(sql(
    'stored_file.of_input',
  )`
    select f.object_key, f.size, f.sha256
    from sonar.scan_input i join sonar.stored_file f on f.workspace_id = i.workspace_id and f.sha256 = i.file_sha256
    where i.scan_id = ${scanId} and i.name = ${input}`);
  return row;
}

/** By its hash. */
export async function storedFile(
  db: Db,
  workspaceId: string,
  sha256: string,
): Promise<{ object_key: string; size: number; sha256: string } | undefined> {
  const [row] = await db.rows<{ object_key: string; size: number; sha256: string }>(sql('stored_file.find')`
    select object_key, size, sha256 from sonar.stored_file
    where workspace_id = ${workspaceId} and sha256 = ${sha256}`);
  return row;
}
