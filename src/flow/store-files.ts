// Files of definitions and scans: put by their owner at places of their own, read and hashed here, and known by
// their hash from then on. What is not what was announced never gets a name.
import { uploadedObjectKey } from '#sonar/contracts/names.ts';
import type { Database } from '#sonar/db/pool.ts';
import { isSonarError, SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import { insertStoredFile, knownFiles } from '#sonar/stores/stored-files.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { readVerified } from './read-output.ts';

interface Parts {
  database: Database;
  objects: ObjectStore;
}
interface Claim {
  sha256: string;
  size: number;
}
type Place = { upload: string; url: string; headers: Record<string, string> } | null;

// The api answers within a minute, and reads what it confirms.
const maxFileBytes = 512 * 1024 * 1024;
const readAtOnce = 8;

/** @throws SonarError `invalid` where one is too large. */
export async function placesForFiles(
  parts: Parts,
  workspaceId: string,
  files: readonly Claim[],
): Promise<Place[]> {
  const large = files.find(({ size }) => size > maxFileBytes);
  if (large)
    throw new SonarError('invalid', `a file of ${large.size} bytes is over the cap of ${maxFileBytes}`);
  const known = await knownFiles(
    parts.database,
    workspaceId,
    files.map(({ sha256 }) => sha256),
  );
  return Promise.all(
    files.map(async ({ sha256, size }) => {
      if (known.has(sha256)) return null;
      const upload = newId<string>();
      const place = await parts.objects.presignPut(uploadedObjectKey(workspaceId, sha256, upload), size);
      return { upload, ...place };
    }),
  );
}

/** @throws SonarError `invalid` that names the first file that is not there or not what was announced. */
export async function confirmFiles(
  parts: Parts,
  workspaceId: string,
  files: readonly (Claim & { upload: string })[],
): Promise<number> {
  const confirm = async ({ sha256, size, upload }: (typeof files)[number]): Promise<void> => {
    const objectKey = uploadedObjectKey(workspaceId, sha256, upload);
    try {
      for await (const _ of await readVerified(parts.objects, { object_key: objectKey, size, sha256 }));
    } catch (error) {
      if (!isSonarError(error, 'not_found') && !isSonarError(error, 'invalid')) throw error;
      throw new SonarError(
        'invalid',
        `the file with SHA-256 ${sha256} did not arrive whole; upload it again`,
        {
          cause: error,
        },
      );
    }
    await insertStoredFile(parts.database, workspaceId, { sha256, size, objectKey });
  };
  for (let at = 0; at < files.length; at += readAtOnce)
    await Promise.all(files.slice(at, at + readAtOnce).map(confirm));
  return files.length;
}
