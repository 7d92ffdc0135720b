// Values that only the holder of a master key can read: AES-256-GCM under a key of its own purpose.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { SonarError } from './errors.ts';
import type { MasterKeys } from './signing.ts';

export interface Sealed {
  keyId: string;
  /** `v1.` and base64url of nonce, tag and ciphertext. */
  sealed: string;
}

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const prefix = 'v1.';

/** A derived key, so that what signs never seals. 2^32 random nonces a key stay far from a repetition. */
const sealingKey = (master: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', master, Buffer.alloc(0), 'sonar/secret', 32));

/** @param place what the value belongs to: it opens nowhere else */
export function seal(keys: MasterKeys, place: string, value: string): Sealed {
  const keyId = keys.currentId;
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, sealingKey(keys.get(keyId) as Buffer), nonce);
  cipher.setAAD(Buffer.from(place));
  const body = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
  const bytes = Buffer.concat([nonce, cipher.getAuthTag(), body]);
  return { keyId, sealed: prefix + bytes.toString('base64url') };
}

/** @throws SonarError `configuration` where the key is gone, `internal` where the value was altered or moved. */
export function unseal(keys: MasterKeys, place: string, { keyId, sealed }: Sealed): string {
  const master = keys.get(keyId);
  if (master === undefined)
    throw new SonarError(
      'configuration',
      `${place} was sealed with master key "${keyId}", which SONAR_MASTER_KEYS does not hold any more; set it again`,
    );
  const bytes = Buffer.from(sealed.slice(prefix.length), 'base64url');
  try {
    const decipher = createDecipheriv(algorithm, sealingKey(master), bytes.subarray(0, nonceBytes), {
      // A shorter tag is refused: it would be easier to guess.
      authTagLength: tagBytes,
    });
    decipher.setAAD(Buffer.from(place));
    decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    const body = bytes.subarray(nonceBytes + tagBytes);
    return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
  } catch (error) {
    throw new SonarError('internal', `${place} does not open: it was altered`, { cause: error });
  }
}
