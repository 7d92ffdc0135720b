// PostgreSQL, RabbitMQ, S3 and Temporal, killed or stopped in order; the stack starts them again.
import { type ServiceName, signalProcess } from '../members.ts';
import type { Fault } from './fault-context.ts';

/** PostgreSQL's fast shutdown; the others know SIGTERM only. */
const inOrder: Record<ServiceName, NodeJS.Signals> = {
  postgres: 'SIGINT',
  rabbitmq: 'SIGTERM',
  s3: 'SIGTERM',
  temporal: 'SIGTERM',
};

export const killService = (name: ServiceName): Fault => end(name, 'SIGKILL');
export const restartService = (name: ServiceName): Fault => end(name, inOrder[name]);

const end =
  (name: ServiceName, signal: NodeJS.Signals): Fault =>
  async ({ system }) => {
    const pid = system.servicePid(name);
    if (!signalProcess(pid, signal)) throw new Error(`${name} is down already`);
    return `${name}, process ${pid}, ${signal}`;
  };
