import type { PortName } from './port-names.ts';
import type { ManagedProcess, ProcessSpec } from './process-supervision.ts';
import type { StackSecrets } from './stack-secrets.ts';

export const serviceNames = ['postgres', 'rabbitmq', 'temporal', 's3'] as const;
export type ServiceName = (typeof serviceNames)[number];

/** What a stack hands to every part of Sonar. */
export interface StackEnvironment {
  SONAR_DATABASE_URL: string;
  SONAR_AMQP_URL: string;
  SONAR_TEMPORAL_ADDRESS: string;
  SONAR_TEMPORAL_NAMESPACE: string;
  SONAR_S3_ENDPOINT: string;
  SONAR_S3_BUCKET: string;
  AWS_ACCESS_KEY_ID: string;
  AWS_SECRET_ACCESS_KEY: string;
  AWS_REGION: string;
  SONAR_MASTER_KEYS: string;
}

/** What a local service is started with. */
export interface ServiceContext {
  /** Its own folder, already made. */
  directory: string;
  log: string;
  ports: Readonly<Record<PortName, number>>;
  secrets: StackSecrets;
  signal: AbortSignal;
  /** Runs one of its processes; resolves when that is ready. */
  launch(spec: ServiceProcessSpec): Promise<ManagedProcess>;
}

export type ServiceProcessSpec = Omit<ProcessSpec, 'kind' | 'onChange' | 'litter' | 'waysOut'> &
  Partial<Pick<ProcessSpec, 'litter'>>;

export interface StartedService {
  /** For people; without password. */
  address: string;
  env: Partial<StackEnvironment>;
  /** The process that serves. */
  process: ManagedProcess;
}
