// Bytes of an accepted output, never believed before their size and hash are checked.
import { createHash } from 'node:crypto';
import { SonarError } from '#sonar/platform/errors.ts';
import { paced } from '#sonar/readers/paced-source.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';

export interface StoredFile {
  object_key: string;
  size: number;
  sha256: string;
}

// Above this a file is read twice, once to verify it and once to use it, so that memory stays flat.
const bufferedBytes = 4 * 1024 * 1024;

/** @throws SonarError `not_found` where the object is missing, `invalid` where it is not what was accepted. */
export async function readVerified(
  objects: ObjectStore,
  file: StoredFile,
): Promise<AsyncIterable<Uint8Array>> {
  if (file.size > bufferedBytes) {
    for await (const _ of verified(await objects.read(file.object_key), file));
    return verified(await objects.read(file.object_key), file);
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of verified(await objects.read(file.object_key), file)) chunks.push(chunk);
  // Nothing of it is waited for any more.
  return paced(once(chunks));
}

async function* verified(bytes: AsyncIterable<Uint8Array>, file: StoredFile): AsyncIterable<Uint8Array> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of bytes) {
    size += chunk.byteLength;
    // A store that sends more than was accepted is not read to its end.
    if (size > file.size) break;
    hash.update(chunk);
    yield chunk;
  }
  if (size !== file.size || hash.digest('hex') !== file.sha256)
    throw new SonarError(
      'invalid',
      `object ${file.object_key} is not the ${file.size} bytes with SHA-256 ${file.sha256} that were accepted`,
    );
}

async function* once(chunks: Uint8Array[]): AsyncIterable<Uint8Array> {
  yield* chunks;
}
