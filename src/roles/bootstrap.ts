// Tokens for this machine's own stack: made in the database directly, since no token exists yet to ask the api with.
import { defaultWorkspace } from '#sonar/contracts/ids.ts';
import type { TokenRole } from '#sonar/contracts/scan-api.ts';
import { openDatabase } from '#sonar/db/pool.ts';
import { createToken } from '#sonar/flow/create-token.ts';
import { deleteTokenNamed } from '#sonar/stores/tokens.ts';

/** A fresh token; the one of that role from an earlier start ends. */
export async function createLocalToken(databaseUrl: string, role: TokenRole): Promise<string> {
  const database = openDatabase({ url: databaseUrl, applicationName: 'sonar up', maxConnections: 1 });
  try {
    return await database.transaction(async (tx) => {
      const name = `local ${role}`;
      await deleteTokenNamed(tx, defaultWorkspace, name);
      return (await createToken(tx, defaultWorkspace, { name, role })).token;
    });
  } finally {
    await database.close();
  }
}
