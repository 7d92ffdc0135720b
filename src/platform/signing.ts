// Signed callbacks by the Standard Webhooks scheme, and the credentials that sign them.
import { hkdfSync, timingSafeEqual } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { signatureHeaders } from '#sonar/contracts/names.ts';
import { SonarError } from './errors.ts';

/** Master keys by id, newest first: the first derives new credentials, the others stay verifiable. */
export interface MasterKeys {
  readonly currentId: string;
  get(keyId: string): Buffer | undefined;
}

/**
 * Parses `SONAR_MASTER_KEYS`: `id:base64(32 bytes)`, several separated by commas, newest first.
 * @throws SonarError `configuration` that names what is wrong with which key, never its value.
 */
export function parseMasterKeys(text: string): MasterKeys {
  const keys = new Map<string, Buffer>();
  for (const [index, item] of text.split(',').entries()) {
    const [id, encoded] = item.trim().split(':');
    const key = Buffer.from(encoded ?? '', 'base64');
    if (!id || !/^[a-z0-9-]{1,32}$/.test(id) || key.length !== 32)
      throw new SonarError(
        'configuration',
        `SONAR_MASTER_KEYS: key ${index + 1} is not "id:base64 of 32 bytes"; make one with: openssl rand -base64 32`,
      );
    if (keys.has(id)) throw new SonarError('configuration', `SONAR_MASTER_KEYS: key id "${id}" stands twice`);
    keys.set(id, key);
  }
  const [currentId] = keys.keys();
  return { currentId: currentId as string, get: (id) => keys.get(id) };
}

/** HKDF-SHA256 of a master key over what the credential is for: 32 bytes, so no table holds it. */
export function deriveCredential(key: Buffer, purpose: 'attempt' | 'incarnation', id: string): string {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), `sonar/${purpose}/${id}`, 32)).toString(
    'base64',
  );
}

export type SignedHeaders = Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>;

/** Signs a body anew for one send. `messageId` is unique a send; `at` is the sender's clock. */
export function signBody(credential: string, messageId: string, at: Date, body: string): SignedHeaders {
  return {
    [signatureHeaders.id]: messageId,
    [signatureHeaders.timestamp]: String(Math.floor(at.getTime() / 1000)),
    [signatureHeaders.signature]: new Webhook(credential).sign(messageId, at, body),
  };
}

export type Verification = 'valid' | 'skew' | 'invalid';

/** Standard Webhooks' own tolerance, in seconds either way. */
const signatureToleranceSeconds = 300;

/** `skew`: the clocks differ by more than the tolerance, whether or not the signature is right. */
export function verifyBody(
  credential: string,
  headers: Record<string, unknown>,
  body: string,
  now: Date,
): Verification {
  const id = headers[signatureHeaders.id];
  const timestamp = headers[signatureHeaders.timestamp];
  const signature = headers[signatureHeaders.signature];
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signature !== 'string')
    return 'invalid';
  if (!/^\d{1,12}$/.test(timestamp)) return 'invalid';
  if (Math.abs(Number(timestamp) - now.getTime() / 1000) > signatureToleranceSeconds) return 'skew';
  // The library's own check reads the process's clock; what is signed is the sender's time, judged above by `now`.
  const expected = Buffer.from(new Webhook(credential).sign(id, new Date(Number(timestamp) * 1000), body));
  const given = signature.split(' ').map((one) => Buffer.from(one));
  const valid = given.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
  return valid ? 'valid' : 'invalid';
}
