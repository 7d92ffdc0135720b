import type { TokenId } from '#sonar/contracts/ids.ts';
import type { TokenRole } from '#sonar/contracts/scan-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import { sql } from '#sonar/db/sql.ts';

export interface TokenRow {
  token_id: TokenId;
  workspace_id: string;
  name: string;
  role: TokenRole;
  tags: string[];
  name_prefix: string;
}

export async function insertToken(db: Db, token: TokenRow & { secret_sha256: Buffer }): Promise<boolean> {
  const inserted = await db.execute(sql('token.insert')`
    insert into sonar.token (token_id, workspace_id, name, role, secret_sha256, tags, name_prefix)
    values (${token.token_id}, ${token.workspace_id}, ${token.name}, ${token.role}, ${token.secret_sha256},
            ${token.tags}, ${token.name_prefix})
    on conflict (workspace_id, name) do nothing`);
  return inserted === 1;
}

export async function findToken(db: Db, secretSha256: Buffer): Promise<TokenRow | undefined> {
  const [row] = await db.rows<TokenRow>(sql('token.find')`
    select token_id, workspace_id, name, role, tags, name_prefix
    from sonar.token where secret_sha256 = ${secretSha256} and revoked_at is null`);
  return row;
}

/** Ends every earlier token of that name and frees the name. */
export function deleteTokenNamed(db: Db, workspaceId: string, name: string): Promise<number> {
  return db.execute(sql('token.delete_named')`
    delete from sonar.token where workspace_id = ${workspaceId} and name = ${name}`);
}
