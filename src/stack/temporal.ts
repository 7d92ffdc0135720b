import { join } from 'node:path';
import { applyTemporalSetup, probeTemporal } from '#sonar/transport/temporal-setup.ts';
import type { Installation } from './installation.ts';
import { loopback } from './port-memory.ts';
import type { ServiceContext, StartedService } from './service-contract.ts';
import { openServiceData } from './service-data.ts';
import { setupOf, type TemporalDevFile } from './temporal-dev-file.ts';
import type { OneProgram } from './wheel-installation.ts';

/** Starts Temporal's development server on a SQLite file, as `temporal-dev.yaml` describes it. */
export async function startTemporal(
  context: ServiceContext,
  installation: Installation<OneProgram>,
  file: TemporalDevFile,
  ui: boolean,
): Promise<StartedService> {
  const { ports, directory } = context;
  const data = openServiceData(directory);
  const address = `${loopback}:${ports.temporalFrontend}`;
  const pairs = (flag: string, values: Record<string, unknown>): string[] =>
    Object.entries(values).flatMap(([name, value]) => [flag, `${name}=${String(value)}`]);
  const process = await context.launch({
    name: 'temporal',
    command: installation.files.program,
    args: [
      'server',
      'start-dev',
      '--ip',
      loopback,
      '--port',
      String(ports.temporalFrontend),
      '--http-port',
      String(ports.temporalHttp),
      '--metrics-port',
      String(ports.temporalMetrics),
      ...(ui ? ['--ui-port', String(ports.temporalUi), '--ui-disable-news-fetch'] : ['--headless']),
      '--db-filename',
      join(data.folder, 'temporal.db'),
      '--namespace',
      file.namespace,
      '--log-level',
      'warn',
      ...pairs('--search-attribute', file.searchAttributes),
      ...pairs('--sqlite-pragma', file.sqlite),
      ...pairs('--dynamic-config-value', asJson(file.dynamicConfig)),
    ],
    env: { HOME: directory },
    cwd: directory,
    log: context.log,
    stopSignal: 'SIGTERM',
    graceMs: 10_000,
    ready: async () => {
      await probeTemporal(address);
    },
    readyWithinMs: 60_000,
  });
  data.keep();
  await applyTemporalSetup(address, setupOf(file), context.signal);
  return {
    address,
    env: { SONAR_TEMPORAL_ADDRESS: address, SONAR_TEMPORAL_NAMESPACE: file.namespace },
    process,
  };
}

function asJson(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]));
}
