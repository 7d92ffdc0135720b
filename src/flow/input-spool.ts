// A file under construction that an object store gets under its own hash: small ones in memory, larger ones on disk.
import { createHash } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';

export interface StoredInput {
  objectKey: string;
  size: number;
  sha256: string;
}

// Smaller: more batches take a turn over the disk. Larger: many at once take more memory.
const memoryBytes = 1024 * 1024;

export class InputSpool {
  readonly #hash = createHash('sha256');
  readonly #maxBytes: number;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #file: FileHandle | undefined;
  #size = 0;

  /** @param maxBytes more than this is a fault of the definition: `invalid` is thrown */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#size;
  }

  async write(piece: string | Uint8Array): Promise<void> {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece);
    this.#size += bytes.length;
    if (this.#size > this.#maxBytes)
      throw new SonarError('invalid', `an input file would be larger than ${this.#maxBytes} bytes`);
    this.#hash.update(bytes);
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > memoryBytes) await this.#spill();
  }

  async #spill(): Promise<void> {
    this.#file ??= await openUnnamed();
    await this.#file.writeFile(Buffer.concat(this.#held));
    this.#held = [];
    this.#heldBytes = 0;
  }

  /** Ends the file and stores it; the key is made of its hash. */
  async store(objects: ObjectStore, keyOf: (sha256: string) => string): Promise<StoredInput> {
    const sha256 = this.#hash.digest('hex');
    const objectKey = keyOf(sha256);
    if (this.#file === undefined) await objects.write(objectKey, Buffer.concat(this.#held), this.#size);
    else {
      await this.#spill();
      await objects.write(objectKey, this.#file.createReadStream({ start: 0, autoClose: false }), this.#size);
    }
    return { objectKey, size: this.#size, sha256 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close();
  }
}

/** A file without a name: whatever happens to this process, nothing stays. */
async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `sonar-input-${newId()}`);
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}
