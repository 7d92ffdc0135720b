// Secrets: sealed when they are set, opened only for the answer to `started`, in no other place in the clear.
import type { Step } from '#sonar/contracts/definition.ts';
import type { Db } from '#sonar/db/pool.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { seal, unseal } from '#sonar/platform/sealing.ts';
import type { MasterKeys } from '#sonar/platform/signing.ts';
import { type SecretRow, sealedSecrets, upsertSecret } from '#sonar/stores/secrets.ts';

/** The value is bound to its name, so that a row cannot be passed off as another. */
const placeOf = (workspaceId: string, name: string): string => `secret "${name}" of workspace ${workspaceId}`;

/** Sets or replaces; running commands keep what they were given. */
export function setSecret(
  parts: { database: Db; keys: MasterKeys },
  workspaceId: string,
  secret: { name: string; value: string; updatedBy: string },
): Promise<SecretRow> {
  const { name, updatedBy } = secret;
  return upsertSecret(parts.database, workspaceId, {
    name,
    updatedBy,
    ...seal(parts.keys, placeOf(workspaceId, name), secret.value),
  });
}

/**
 * The environment variables that a step's command gets of secrets.
 * @throws SonarError `internal` where one is not set, `configuration` where its master key is gone.
 */
export async function openSecrets(
  parts: { database: Db; keys: MasterKeys },
  workspaceId: string,
  step: Pick<Step, 'secrets'>,
): Promise<Record<string, string>> {
  const variables = Object.entries(step.secrets);
  if (variables.length === 0) return {};
  const rows = await sealedSecrets(
    parts.database,
    workspaceId,
    variables.map(([, name]) => name),
  );
  return Object.fromEntries(
    variables.map(([variable, name]) => {
      const row = rows.find((candidate) => candidate.name === name);
      if (row === undefined) throw new SonarError('internal', `secret "${name}" is not set`);
      const sealed = { keyId: row.key_id, sealed: row.sealed };
      return [variable, unseal(parts.keys, placeOf(workspaceId, name), sealed)];
    }),
  );
}
