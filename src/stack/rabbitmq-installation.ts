import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { environment } from '#sonar/contracts/names.ts';
import { debianRabbitFiles, downloadDebianRabbit, type RabbitFiles } from './debian-rabbitmq.ts';
import type { InstallationWays, PathOffer } from './installation.ts';
import { findProgram, isAtLeast } from './path-program.ts';
import { StackError } from './stack-error.ts';

const oldest = '3.10';

/** RabbitMQ of PATH, or Debian's packages unpacked in the cache. */
export function rabbitmqWays(): InstallationWays<RabbitFiles> {
  return {
    title: 'RabbitMQ',
    variable: environment.amqpUrl,
    onPath: `rabbitmq-server ${oldest} or newer, erl and epmd`,
    fromPath: (variables) => Promise.resolve(offerOfPath(variables)),
    download:
      process.platform === 'linux' && existsSync('/etc/debian_version')
        ? {
            key: `rabbitmq-debian-${process.arch}`,
            version: "of this machine's Debian",
            clients: ['apt-get', 'apt-cache', 'dpkg-deb'],
            fill: downloadDebianRabbit,
            open: openEntry,
          }
        : undefined,
  };
}

function openEntry(folder: string): { version: string; files: RabbitFiles } {
  const files = debianRabbitFiles(folder);
  if (!files)
    throw new StackError('data_unusable', `${folder} holds no RabbitMQ`, [`remove it: rm -r ${folder}`]);
  return { version: files.version, files };
}

function offerOfPath(variables: NodeJS.ProcessEnv): PathOffer<RabbitFiles> | undefined {
  const found = findProgram('rabbitmq-server', variables);
  if (!found) return undefined;
  // Debian's is a wrapper that insists on root or its own user; the script proper is linked beside it.
  const beside = join(dirname(found), 'rabbitmq-server');
  const server = basename(found) === 'rabbitmq-script-wrapper' && existsSync(beside) ? beside : found;
  const version = /rabbitmq_server-(\d+(?:\.\d+)+)/.exec(realpathSync(server))?.[1];
  const [erl, epmd] = [findProgram('erl', variables), findProgram('epmd', variables)];
  if (!erl || !epmd) return { passedOver: `${server} is there, but not erl and epmd` };
  if (!version) return { passedOver: `the version of ${server} cannot be told from its place` };
  if (!isAtLeast(version, oldest)) return { passedOver: `${server} is ${version}, older than ${oldest}` };
  return { version, files: { server, erlangBin: dirname(erl), version } };
}
