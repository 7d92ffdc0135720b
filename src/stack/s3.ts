import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BucketAddress, ensureBucket } from '#sonar/transport/s3-setup.ts';
import type { Installation } from './installation.ts';
import { loopback } from './port-memory.ts';
import { seaweedAdminGrpcDistance } from './port-names.ts';
import type { ServiceContext, StartedService } from './service-contract.ts';
import { openServiceData } from './service-data.ts';
import type { OneProgram } from './wheel-installation.ts';

export const standardBucket = 'sonar';
export const standardRegion = 'us-east-1';

/** SeaweedFS has each of its gRPC ports beside it as a socket in a folder that no option moves. */
function grpcSockets(ports: ServiceContext['ports']): string[] {
  const parts = {
    master: ports.seaweedMasterGrpc,
    volume: ports.seaweedVolumeGrpc,
    filer: ports.seaweedFilerGrpc,
    s3: ports.s3Grpc,
    admin: ports.seaweedAdmin + seaweedAdminGrpcDistance,
  };
  return Object.entries(parts).map(([part, port]) => `/tmp/seaweedfs-${part}-grpc-${port}.sock`);
}

/** Starts SeaweedFS as an S3 server with one pair of keys and the bucket `sonar`; every port it opens is named. */
export async function startS3(
  context: ServiceContext,
  installation: Installation<OneProgram>,
): Promise<StartedService> {
  const { ports, directory, secrets } = context;
  const data = openServiceData(directory);
  const bucket: BucketAddress = {
    endpoint: `http://${loopback}:${ports.s3}`,
    bucket: standardBucket,
    region: standardRegion,
    accessKeyId: secrets.s3AccessKeyId,
    secretAccessKey: secrets.s3SecretAccessKey,
  };
  const keys = { accessKey: bucket.accessKeyId, secretKey: bucket.secretAccessKey };
  const identities = [
    { name: 'sonar', credentials: [keys], actions: ['Admin', 'Read', 'Write', 'List', 'Tagging'] },
  ];
  const configuration = join(directory, 'identities.json');
  writeFileSync(configuration, JSON.stringify({ identities }), { mode: 0o600 });
  // What the last start was told is read back from this file and would win over ports that have moved since.
  rmSync(join(data.folder, 'mini.options'), { force: true });
  const options = {
    dir: data.folder,
    ip: loopback,
    'ip.bind': loopback,
    'master.telemetry': false,
    'master.volumeSizeLimitMB': 128,
    'master.port': ports.seaweedMaster,
    'master.port.grpc': ports.seaweedMasterGrpc,
    'volume.port': ports.seaweedVolume,
    'volume.port.grpc': ports.seaweedVolumeGrpc,
    'volume.preStopSeconds': 0,
    'filer.port': ports.seaweedFiler,
    'filer.port.grpc': ports.seaweedFilerGrpc,
    's3.port': ports.s3,
    's3.port.grpc': ports.s3Grpc,
    'filer.localSocket': 'filer.sock', // in its own folder, which is its working folder: a socket's path must be short
    's3.localSocket': 's3.sock',
    's3.port.iceberg': 0,
    's3.port.lance': 0,
    's3.config': configuration,
    'admin.ui': false,
    'admin.port': ports.seaweedAdmin, // opened without its pages too: workers of the server itself report there
    'admin.port.grpc': ports.seaweedAdmin + seaweedAdminGrpcDistance,
    webdav: false,
  };
  const process = await context.launch({
    name: 's3',
    command: installation.files.program,
    args: ['-logtostderr', 'mini', ...Object.entries(options).map(([name, value]) => `-${name}=${value}`)],
    env: { HOME: directory },
    cwd: directory,
    log: context.log,
    stopSignal: 'SIGTERM',
    litter: grpcSockets(ports),
    graceMs: 5_000, // it now and then hangs while it stops; its data bears SIGKILL
    ready: () => ensureBucket(bucket, AbortSignal.any([context.signal, AbortSignal.timeout(10_000)])),
    readyWithinMs: 60_000,
  });
  data.keep();
  return {
    address: bucket.endpoint,
    env: {
      SONAR_S3_ENDPOINT: bucket.endpoint,
      SONAR_S3_BUCKET: bucket.bucket,
      AWS_ACCESS_KEY_ID: bucket.accessKeyId,
      AWS_SECRET_ACCESS_KEY: bucket.secretAccessKey,
      AWS_REGION: bucket.region,
    },
    process,
  };
}
