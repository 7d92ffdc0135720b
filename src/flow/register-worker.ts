// A worker says who it is; the answer is the secret that signs its pulses.
import type { Registration, RegistrationAnswer } from '#sonar/contracts/worker-api.ts';
import type { Database } from '#sonar/db/pool.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { deriveCredential, type MasterKeys } from '#sonar/platform/signing.ts';
import type { TokenRow } from '#sonar/stores/tokens.ts';
import {
  findIncarnation,
  insertIncarnation,
  lockWorkerName,
  replaceIncarnations,
} from '#sonar/stores/workers.ts';

/**
 * The newest registration of a name wins; the older incarnation is told so at its next pulse.
 * @throws SonarError `forbidden` where the token does not cover the name or a tag, `conflict` where the
 * incarnation's id belongs to another worker.
 */
export async function registerWorker(
  parts: { database: Database; keys: MasterKeys; settings: Pick<Settings, 'SONAR_PULSE_EVERY_MS'> },
  token: TokenRow,
  worker: Registration,
): Promise<RegistrationAnswer> {
  assertTokenCovers(token, worker);
  const keyId = await parts.database.transaction(async (tx) => {
    await lockWorkerName(tx, token.workspace_id, worker.name);
    const known = await findIncarnation(tx, worker.incarnationId);
    // A registration whose answer was lost is sent again, maybe after a newer one: it replaces nobody.
    if (known?.worker_name === worker.name && known.workspace_id === token.workspace_id) return known.key_id;
    await replaceIncarnations(tx, token.workspace_id, worker.name);
    if (!(await insertIncarnation(tx, token.workspace_id, parts.keys.currentId, worker)))
      throw new SonarError('conflict', `incarnation ${worker.incarnationId} belongs to another worker`);
    return parts.keys.currentId;
  });
  const key = parts.keys.get(keyId);
  if (!key) throw new SonarError('configuration', `master key "${keyId}" is not in SONAR_MASTER_KEYS`);
  return {
    secret: deriveCredential(key, 'incarnation', worker.incarnationId),
    pulseEveryMs: parts.settings.SONAR_PULSE_EVERY_MS,
    serverTime: new Date().toISOString(),
  };
}

/** @throws SonarError `forbidden` where the token does not cover the worker's name or one of its tags. */
export function assertTokenCovers(token: TokenRow, worker: { name: string; tags: readonly string[] }): void {
  if (!worker.name.startsWith(token.name_prefix))
    throw new SonarError(
      'forbidden',
      `token "${token.name}" is for workers whose names start with "${token.name_prefix}", not "${worker.name}"`,
    );
  const foreign = token.tags.length > 0 ? worker.tags.find((tag) => !token.tags.includes(tag)) : undefined;
  if (foreign !== undefined)
    throw new SonarError(
      'forbidden',
      `token "${token.name}" does not cover tag "${foreign}"; it covers ${token.tags.join(', ')}`,
    );
}
