import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { probeBroker } from '#sonar/transport/amqp-probe.ts';
import type { RabbitFiles } from './debian-rabbitmq.ts';
import type { Installation } from './installation.ts';
import { loopback } from './port-memory.ts';
import { baseEnvironment } from './process-supervision.ts';
import type { ServiceContext, StartedService } from './service-contract.ts';
import { openServiceData } from './service-data.ts';

const user = 'sonar';
const virtualHost = 'sonar';
/** Longer than any command may run while its delivery is held unacknowledged. */
const consumerTimeoutMs = 7 * 24 * 3_600_000;
const namesRequest = Buffer.from([0, 1, 'n'.charCodeAt(0)]);
const mapperAnswersWithinMs = 2_000;

/** Starts RabbitMQ with a port mapper (epmd) of its own; listener, distribution and mapper on loopback only. */
export async function startRabbitmq(
  context: ServiceContext,
  installation: Installation<RabbitFiles>,
): Promise<StartedService> {
  const { ports, directory, secrets } = context;
  const data = openServiceData(directory);
  const env = writeConfiguration(context, installation.files, data.folder);
  await context.launch({
    name: 'epmd',
    command: join(installation.files.erlangBin, 'epmd'),
    args: ['-port', String(ports.erlangMapper), '-address', loopback],
    env,
    cwd: directory,
    log: join(dirname(context.log), 'epmd.log'),
    stopSignal: 'SIGTERM',
    graceMs: 2_000,
    ready: () => mapperAnswers(ports.erlangMapper),
    readyWithinMs: 20_000,
  });
  const url = `amqp://${user}:${secrets.amqpPassword}@${loopback}:${ports.amqp}/${virtualHost}`;
  const process = await context.launch({
    name: 'rabbitmq',
    command: installation.files.server,
    args: [],
    env,
    cwd: directory,
    log: context.log,
    stopSignal: 'SIGTERM',
    graceMs: 15_000,
    ready: async () => {
      await probeBroker(url);
    },
    readyWithinMs: 120_000,
  });
  data.keep();
  return { address: `${loopback}:${ports.amqp}/${virtualHost}`, env: { SONAR_AMQP_URL: url }, process };
}

/** Writes its files and returns its environment, which names every place that would otherwise be the system's. */
function writeConfiguration(context: ServiceContext, files: RabbitFiles, data: string): NodeJS.ProcessEnv {
  const { directory, ports, secrets } = context;
  const home = join(directory, 'home');
  mkdirSync(home, { recursive: true });
  const file = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const cookie = join(home, '.erlang.cookie');
  if (!existsSync(cookie)) writeFileSync(cookie, secrets.erlangCookie, { mode: 0o400 });
  const settings = [
    `listeners.tcp.1 = ${loopback}:${ports.amqp}`,
    `default_user = ${user}`,
    `default_pass = ${secrets.amqpPassword}`,
    `default_vhost = ${virtualHost}`,
    `consumer_timeout = ${consumerTimeoutMs}`,
    'log.console = true',
    'log.file = false',
  ];
  return {
    PATH: `${files.erlangBin}${delimiter}${baseEnvironment()['PATH']}`,
    HOME: home,
    ERL_EPMD_PORT: String(ports.erlangMapper),
    ERL_EPMD_ADDRESS: loopback,
    ERL_CRASH_DUMP: join(directory, 'erl_crash.dump'),
    RABBITMQ_NODENAME: 'sonar@localhost',
    RABBITMQ_DIST_PORT: String(ports.erlangDistribution),
    RABBITMQ_CONFIG_FILE: file('rabbitmq.conf', `${settings.join('\n')}\n`),
    RABBITMQ_ADVANCED_CONFIG_FILE: file('advanced.config', '[].\n'),
    RABBITMQ_CONF_ENV_FILE: file('rabbitmq-env.conf', ''),
    RABBITMQ_ENABLED_PLUGINS_FILE: file('enabled_plugins', '[].\n'),
    RABBITMQ_MNESIA_BASE: data,
    RABBITMQ_LOG_BASE: join(data, 'log'),
    RABBITMQ_LOG: 'info,-color',
    RABBITMQ_PID_FILE: join(directory, 'rabbitmq.pid'),
    // The script then becomes the broker instead of waiting for it, so the signal and the pid are the broker's.
    RABBITMQ_ALLOW_INPUT: 'true',
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-noinput -kernel inet_dist_use_interface {127,0,0,1}',
  };
}

/** Asks the mapper for its names; any answer will do. */
function mapperAnswers(port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host: loopback, port, timeout: mapperAnswersWithinMs }, () =>
    socket.write(namesRequest),
  );
  socket.on('data', () => resolve());
  socket.on('timeout', () => socket.destroy(new Error('epmd does not answer')));
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('epmd closed the connection')));
  return promise.finally(() => socket.destroy());
}
