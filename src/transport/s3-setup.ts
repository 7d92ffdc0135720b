import { CreateBucketCommand, HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';

export interface BucketAddress {
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/**
 * Makes the bucket unless it is there. May be repeated. Throws when the server does not answer, refuses the keys, or the
 * bucket belongs to another account.
 */
export function ensureBucket(address: BucketAddress, signal?: AbortSignal): Promise<void> {
  return withClient(address, async (client) => {
    const options = signal ? { abortSignal: signal } : {};
    if (!(await bucketExists(client, address.bucket, options)))
      await createBucket(client, address.bucket, options);
  });
}

/** Whether the bucket is there; changes nothing. Throws when the server does not answer or refuses the keys. */
export function probeBucket(address: BucketAddress): Promise<boolean> {
  return withClient(address, (client) => bucketExists(client, address.bucket, {}));
}

async function withClient<Result>(
  address: BucketAddress,
  work: (client: S3Client) => Promise<Result>,
): Promise<Result> {
  const client = new S3Client({
    endpoint: address.endpoint,
    region: address.region,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId: address.accessKeyId, secretAccessKey: address.secretAccessKey },
    requestHandler: { connectionTimeout: 2_000, requestTimeout: 10_000 },
  });
  try {
    return await work(client);
  } finally {
    client.destroy();
  }
}

async function bucketExists(
  client: S3Client,
  bucket: string,
  options: { abortSignal?: AbortSignal },
): Promise<boolean> {
  try {
    await client.send(new HeadBucketCommand({ Bucket: bucket }), options);
    return true;
  } catch (fault) {
    if ((fault as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode === 404)
      return false;
    throw fault;
  }
}

async function createBucket(
  client: S3Client,
  bucket: string,
  options: { abortSignal?: AbortSignal },
): Promise<void> {
  try {
    await client.send(new CreateBucketCommand({ Bucket: bucket }), options);
  } catch (fault) {
    // Two starts at once: the other one has made it.
    if ((fault as { name?: string }).name !== 'BucketAlreadyOwnedByYou') throw fault;
  }
}
