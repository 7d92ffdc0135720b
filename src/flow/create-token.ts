// A token is made: its text is shown once, its hash is kept.
import { createHash, randomBytes } from 'node:crypto';
import type { TokenId } from '#sonar/contracts/ids.ts';
import type { CreateToken, TokenRole } from '#sonar/contracts/scan-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import { insertToken } from '#sonar/stores/tokens.ts';

export interface CreatedToken {
  id: TokenId;
  name: string;
  role: TokenRole;
  token: string;
}

/** @throws SonarError `conflict` where the name is taken. */
export async function createToken(db: Db, workspaceId: string, request: CreateToken): Promise<CreatedToken> {
  const token = `sonar_${randomBytes(32).toString('base64url')}`;
  const id = newId<TokenId>();
  const made = await insertToken(db, {
    token_id: id,
    workspace_id: workspaceId,
    name: request.name,
    role: request.role,
    tags: request.tags ?? [],
    name_prefix: request.namePrefix ?? '',
    secret_sha256: createHash('sha256').update(token).digest(),
  });
  if (!made)
    throw new SonarError('conflict', `there is a token named "${request.name}" already; take another name`);
  return { id, name: request.name, role: request.role, token };
}
