import { environment as names } from '#sonar/contracts/names.ts';
import { probeDatabase } from '#sonar/db/database-probe.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { pause } from '#sonar/platform/wait.ts';
import { probeBroker } from '#sonar/transport/amqp-probe.ts';
import { ensureBucket, probeBucket } from '#sonar/transport/s3-setup.ts';
import { probeTemporal } from '#sonar/transport/temporal-setup.ts';
import { standardBucket, standardRegion } from './s3.ts';
import type { ServiceName, StackEnvironment } from './service-contract.ts';
import { StackError } from './stack-error.ts';
import { applyTemporalConfig, readTemporalDevFile } from './temporal-dev-file.ts';

/** The variable by which the environment names a running service. */
export const addressVariables: Record<ServiceName, keyof StackEnvironment> = {
  postgres: names.databaseUrl,
  rabbitmq: names.amqpUrl,
  temporal: names.temporalAddress,
  s3: names.s3Endpoint,
};

/** A service that somebody else runs, as the environment names it. */
export interface ExternalService {
  variable: string;
  /** For people: without user and password. */
  address: string;
  env: Partial<StackEnvironment>;
  /** Asks it for its version, where its protocol tells one. Throws when it does not answer or refuses us. */
  probe(): Promise<string | undefined>;
  /** Gives it what Sonar needs there: namespace, search attributes, bucket. May be repeated. */
  prepare(signal: AbortSignal): Promise<void>;
}

const askAgainMs = 250;

/** The service of the environment; undefined when it names none. */
export function externalService(
  name: ServiceName,
  environment: NodeJS.ProcessEnv,
): ExternalService | undefined {
  const variable = addressVariables[name];
  const given = environment[variable];
  if (!given) return undefined;
  const common = { variable, address: withoutPassword(given), prepare: () => Promise.resolve() };
  switch (name) {
    case 'postgres':
      return { ...common, env: { SONAR_DATABASE_URL: given }, probe: () => probeDatabase(given) };
    case 'rabbitmq':
      return { ...common, env: { SONAR_AMQP_URL: given }, probe: () => probeBroker(given) };
    case 'temporal': {
      const namespace = environment['SONAR_TEMPORAL_NAMESPACE'] || readTemporalDevFile().namespace;
      return {
        ...common,
        env: { SONAR_TEMPORAL_ADDRESS: given, SONAR_TEMPORAL_NAMESPACE: namespace },
        probe: () => probeTemporal(given),
        prepare: (signal) => applyTemporalConfig(given, namespace, signal),
      };
    }
    case 's3':
      return { ...common, ...externalBucket(given, environment) };
  }
}

function externalBucket(
  endpoint: string,
  environment: NodeJS.ProcessEnv,
): Pick<ExternalService, 'env' | 'probe' | 'prepare'> {
  const bucket = {
    endpoint,
    bucket: environment['SONAR_S3_BUCKET'] || standardBucket,
    region: environment['AWS_REGION'] || standardRegion,
    accessKeyId: environment['AWS_ACCESS_KEY_ID'] ?? '',
    secretAccessKey: environment['AWS_SECRET_ACCESS_KEY'] ?? '',
  };
  return {
    env: {
      SONAR_S3_ENDPOINT: endpoint,
      SONAR_S3_BUCKET: bucket.bucket,
      AWS_ACCESS_KEY_ID: bucket.accessKeyId,
      AWS_SECRET_ACCESS_KEY: bucket.secretAccessKey,
      AWS_REGION: bucket.region,
    },
    async probe() {
      if (!bucket.accessKeyId || !bucket.secretAccessKey) {
        throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY have to be set with it');
      }
      await probeBucket(bucket);
      return undefined;
    },
    prepare: (signal) => ensureBucket(bucket, signal),
  };
}

/** Waits for the service, it may just be starting, and prepares it. Throws `unreachable` naming variable and ways out. */
export async function useExternalService(
  service: ExternalService,
  answersWithinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const until = performance.now() + answersWithinMs;
  for (;;) {
    signal.throwIfAborted();
    try {
      await service.probe();
      await service.prepare(signal);
      return;
    } catch (fault) {
      signal.throwIfAborted();
      if (performance.now() < until) {
        await pause(askAgainMs, signal);
        continue;
      }
      throw new StackError(
        'unreachable',
        `${service.variable} names ${service.address}, which cannot be used: ${messageOf(fault)}`,
        [
          `start it, or correct ${service.variable}`,
          `unset ${service.variable}, so that Sonar starts one of its own`,
        ],
        { cause: fault },
      );
    }
  }
}

function withoutPassword(address: string): string {
  if (!URL.canParse(address) || !address.includes('//')) return address;
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}
