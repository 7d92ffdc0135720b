// Record types that definitions of a workspace have declared; each has one meaning for good.
import type { RecordDeclaration } from '#sonar/contracts/record-declaration.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface RecordTypeRow {
  name: string;
  declaration: RecordDeclaration;
  declared_by: string;
}

/** Declares what is not declared yet, in order of name, so that two definitions never wait for each other in a ring. */
export async function declareTypes(
  db: Db,
  workspaceId: string,
  definition: string,
  types: Readonly<Record<string, RecordDeclaration>>,
): Promise<void> {
  await db.execute(sql('record_type.declare')`
    insert into sonar.record_type (workspace_id, name, declaration, declared_by)
    select ${workspaceId}, name, declaration, ${definition} from jsonb_each(${JSON.stringify(types)}::jsonb) as t (name, declaration)
    order by name
    on conflict (workspace_id, name) do nothing`);
}

export function declaredTypes(db: Db, workspaceId: string): Promise<RecordTypeRow[]> {
  return db.rows(sql('record_type.list')`
    select name, declaration, declared_by from sonar.record_type where workspace_id = ${workspaceId} order by name`);
}
