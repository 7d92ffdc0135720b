// Files of scans, in any server with S3's API.
import type { Readable } from 'node:stream';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';

export interface ObjectStore {
  /** A GET that works for `urlLifeMs`. */
  presignGet(key: string): Promise<string>;
  /**
   * A PUT of exactly `size` bytes under a key that is free: signed length and `If-None-Match: *`, so a URL
   * that is used twice answers 412 and never overwrites.
   */
  presignPut(key: string, size: number): Promise<{ url: string; headers: Record<string, string> }>;
  /** @throws SonarError `not_found` where there is no such object, `unreachable` otherwise, also while it is read. */
  read(key: string): Promise<AsyncIterable<Uint8Array>>;
  /**
   * For what the control roles make themselves, under a key that its bytes determine. A stream is sent once.
   * @throws SonarError `unreachable`.
   */
  write(key: string, body: Uint8Array | Readable, size: number): Promise<void>;
  /** What is gone already counts as removed. At most a thousand keys. @throws SonarError `unreachable`. */
  remove(keys: readonly string[]): Promise<void>;
  /** Removes up to a thousand objects whose keys begin with `prefix`. @returns how many. @throws SonarError `unreachable`. */
  removeUnder(prefix: string): Promise<number>;
  /** @throws SonarError `unreachable` when the bucket does not answer. */
  check(): Promise<void>;
  close(): void;
}

export interface ObjectStoreOptions {
  endpoint: string;
  bucket: string;
  region: string;
  urlLifeMs: number;
}

/** Credentials come from the standard AWS variables. */
export function openObjectStore(options: ObjectStoreOptions): ObjectStore {
  const client = new S3Client({
    endpoint: options.endpoint,
    region: options.region,
    forcePathStyle: true,
    // A presigned PUT cannot carry a checksum that is computed at the send.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    // Readers verify the hash that was accepted: so a fault within a body is always the connection's, never the bytes'.
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 3,
    // Without the throw a request that is past its time is only warned of; a body that stops is the socket's.
    requestHandler: {
      connectionTimeout: 5_000,
      requestTimeout: 60_000,
      throwOnRequestTimeout: true,
      socketTimeout: 60_000,
    },
  });
  const Bucket = options.bucket;
  const expiresIn = Math.floor(options.urlLifeMs / 1000);

  async function remove(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    const Objects = keys.map((Key) => ({ Key }));
    const answer = await client
      .send(new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }))
      .catch((error: unknown) => {
        throw new SonarError('unreachable', `the object store removed nothing: ${messageOf(error)}`, {
          cause: error,
        });
      });
    const fault = answer.Errors?.find(({ Code }) => Code !== 'NoSuchKey');
    if (fault)
      throw new SonarError('unreachable', `the object store did not remove ${fault.Key}: ${fault.Message}`);
  }

  return {
    remove,
    async removeUnder(Prefix) {
      const answer = await client
        .send(new ListObjectsV2Command({ Bucket, Prefix }))
        .catch((error: unknown) => {
          throw new SonarError(
            'unreachable',
            `the object store did not list ${Prefix}: ${messageOf(error)}`,
            {
              cause: error,
            },
          );
        });
      const keys = (answer.Contents ?? []).flatMap(({ Key }) => (Key === undefined ? [] : [Key]));
      await remove(keys);
      return keys.length;
    },
    presignGet: (Key) => getSignedUrl(client, new GetObjectCommand({ Bucket, Key }), { expiresIn }),
    async presignPut(Key, size) {
      const command = new PutObjectCommand({ Bucket, Key, ContentLength: size, IfNoneMatch: '*' });
      const url = await getSignedUrl(client, command, {
        expiresIn,
        signableHeaders: new Set(['content-length', 'if-none-match', 'host']),
        unhoistableHeaders: new Set(['if-none-match']),
      });
      return { url, headers: { 'content-length': String(size), 'if-none-match': '*' } };
    },
    async read(Key) {
      try {
        const answer = await client.send(new GetObjectCommand({ Bucket, Key }));
        return unbroken(Key, answer.Body as unknown as AsyncIterable<Uint8Array>);
      } catch (error) {
        // A bucket that is not there is a setting to mend, not an object that is lost.
        if ((error as { name?: string }).name === 'NoSuchKey')
          throw new SonarError('not_found', `no object ${Key} in the store`, { cause: error });
        throw new SonarError('unreachable', `the object store did not give ${Key}: ${messageOf(error)}`, {
          cause: error,
        });
      }
    },
    async write(Key, Body, size) {
      try {
        await client.send(new PutObjectCommand({ Bucket, Key, Body, ContentLength: size }));
      } catch (error) {
        throw new SonarError('unreachable', `the object store did not take ${Key}: ${messageOf(error)}`, {
          cause: error,
        });
      }
    },
    async check() {
      try {
        await client.send(new HeadBucketCommand({ Bucket }));
      } catch (error) {
        throw new SonarError(
          'unreachable',
          `the object store at ${options.endpoint} does not give bucket ${Bucket}: ${messageOf(error)}`,
          { cause: error },
        );
      }
    },
    close: () => client.destroy(),
  };
}

/** A store may die in the middle of a body as well as before it. */
async function* unbroken(key: string, body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw new SonarError('unreachable', `the object store broke off within ${key}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
