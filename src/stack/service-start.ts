import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DataDirectory } from './data-directory.ts';
import type { DownloadContext } from './download-context.ts';
import { addressVariables, externalService, useExternalService } from './external-service.ts';
import { ensureInstalled, type Installation, type InstallationWays } from './installation.ts';
import type { PortName } from './port-names.ts';
import { postgresData, startPostgres } from './postgres.ts';
import { postgresWays } from './postgres-installation.ts';
import type { ProcessGroup } from './process-group.ts';
import { startRabbitmq } from './rabbitmq.ts';
import { rabbitmqWays } from './rabbitmq-installation.ts';
import { startS3 } from './s3.ts';
import type { ServiceContext, ServiceName, StackEnvironment, StartedService } from './service-contract.ts';
import type { StackEvent } from './stack-event.ts';
import type { StackSecrets } from './stack-secrets.ts';
import { startTemporal } from './temporal.ts';
import type { TemporalDevFile } from './temporal-dev-file.ts';
import { s3Ways, temporalWays } from './wheel-installation.ts';

/** A service of a stack as it serves, or one that somebody else runs. */
export interface RunningService {
  readonly name: ServiceName;
  /** For people; without password. */
  readonly address: string;
  /** Undefined when external, and between two lives. */
  readonly pid: number | undefined;
  readonly external: boolean;
  /** Undefined when external. */
  readonly log: string | undefined;
  /** Where its programs came from and which version; undefined when external. */
  readonly installation: { source: 'path' | 'cache' | 'download'; version: string } | undefined;
}

export interface ServiceStart {
  directory: DataDirectory;
  secrets: StackSecrets;
  signal: AbortSignal;
  environment: NodeJS.ProcessEnv;
  externalWithinMs: number;
  onProgress: (event: StackEvent) => void;
  processes: ProcessGroup;
  ports: Readonly<Record<PortName, number>>;
  temporal: { file: TemporalDevFile; ui: boolean };
  cache: string;
  downloadEnvironment: NodeJS.ProcessEnv;
}

/** Brings one service up, or makes sure of the one that the environment names. */
export async function startService(
  name: ServiceName,
  start: ServiceStart,
): Promise<{ service: RunningService; env: Partial<StackEnvironment> }> {
  const startedAt = performance.now();
  const report = (state: StackEvent['state'], detail: string): void => {
    const seconds = (performance.now() - startedAt) / 1000;
    start.onProgress({ service: name, state, detail, ...(state === 'ready' && { seconds }) });
  };
  const external = externalService(name, start.environment);
  if (external) {
    await useExternalService(external, start.externalWithinMs, start.signal);
    report('external', external.address);
    const none = { pid: undefined, log: undefined, installation: undefined };
    return { service: { name, address: external.address, external: true, ...none }, env: external.env };
  }
  const directory = join(start.directory.root, name);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const log = join(start.directory.logs, `${name}.log`);
  const waysOut = [
    `set ${addressVariables[name]} to a running one`,
    `give its data up: rm -r ${directory}`,
    'sonar doctor',
  ];
  const context: ServiceContext = {
    directory,
    log,
    ports: start.ports,
    secrets: start.secrets,
    signal: start.signal,
    launch: (spec) => start.processes.launch({ litter: [], ...spec, waysOut, kind: 'service' }, start.signal),
  };
  const { started, installation } = await startLocal(name, context, start, report);
  report('ready', started.address);
  const service: RunningService = {
    name,
    log,
    external: false,
    address: started.address,
    installation: { source: installation.source, version: installation.version },
    get pid() {
      return started.process.pid;
    },
  };
  return { service, env: started.env };
}

type Report = (state: StackEvent['state'], detail: string) => void;

async function startLocal(
  name: ServiceName,
  context: ServiceContext,
  start: ServiceStart,
  report: Report,
): Promise<{ started: StartedService; installation: Installation<unknown> }> {
  const download: DownloadContext = { signal: start.signal, environment: start.downloadEnvironment };
  const installed = async <Files>(ways: InstallationWays<Files>): Promise<Installation<Files>> => {
    const installation = await ensureInstalled(ways, start.cache, download, (detail) =>
      report('downloading', detail),
    );
    report('starting', `${ways.title} ${installation.version} (${installation.source})`);
    return installation;
  };
  switch (name) {
    case 'postgres': {
      const installation = await installed(postgresWays(postgresData(context.directory)));
      return { installation, started: await startPostgres(context, installation) };
    }
    case 'rabbitmq': {
      const installation = await installed(rabbitmqWays());
      return { installation, started: await startRabbitmq(context, installation) };
    }
    case 'temporal': {
      const installation = await installed(temporalWays());
      const { file, ui } = start.temporal;
      return { installation, started: await startTemporal(context, installation, file, ui) };
    }
    case 's3': {
      const installation = await installed(s3Ways());
      return { installation, started: await startS3(context, installation) };
    }
  }
}
