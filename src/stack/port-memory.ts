import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile, writePrivateFile } from './data-directory.ts';
import { derivedPorts, type PortName, portNames } from './port-names.ts';
import { StackError } from './stack-error.ts';

export const loopback = '127.0.0.1';

// Below the ports that Linux and macOS give to outgoing connections (32768 and up), so none of those takes a remembered
// port while the stack is down; and so low that the ports derived from a block's are beyond every block, yet below, too.
const firstPort = 12_000;
const blocks = 312;
const blockSize = 32;
const blockAttempts = 64;

const rememberedPorts = z.partialRecord(z.enum(portNames), z.int().min(1).max(65_535));

export interface PortReservation {
  ports: Readonly<Record<PortName, number>>;
  /** Ports that had to move since the last start, in words. */
  moved: string[];
  release(): void;
}

/**
 * The ports of a data folder: those of its last start where they are free, otherwise free ones of a block that no other
 * running stack has. `fixed` ports are taken as they are. Throws `port_in_use` naming a fixed port that is taken.
 */
export async function reservePorts(
  dataDir: string,
  fixed: Partial<Record<PortName, number>>,
): Promise<PortReservation> {
  const file = join(dataDir, 'ports.json');
  const parsed = rememberedPorts.safeParse(readJsonFile(file));
  const remembered: Partial<Record<PortName, number>> = parsed.success ? parsed.data : {};
  const claim = await claimBlock(remembered.claim);
  // Another stack has the block now; its services may not have bound their ports yet, so none of them counts as free.
  const lostBlock = remembered.claim !== undefined && remembered.claim !== claim.port;
  try {
    const ports = { claim: claim.port } as Record<PortName, number>;
    const moved: string[] = [];
    const kept = lostBlock ? [] : Object.values(remembered);
    const spokenFor = new Set<number>([claim.port, ...Object.values(fixed), ...kept]);
    const given = new Set<number>();
    for (const name of portNames) {
      if (name === 'claim') continue;
      const configured = fixed[name];
      const before = remembered[name];
      if (configured !== undefined) {
        if (!(await isFree(name, configured))) throw portInUse(name, configured);
        ports[name] = configured;
      } else if (before !== undefined && !lostBlock && !given.has(before) && (await isFree(name, before))) {
        ports[name] = before;
      } else {
        ports[name] = await nextFree(name, claim.port, spokenFor);
        if (before !== undefined)
          moved.push(`port ${before} (${name}) is taken by somebody else; using ${ports[name]}`);
      }
      spokenFor.add(ports[name]);
      given.add(ports[name]);
    }
    writePrivateFile(file, JSON.stringify(ports, undefined, 2));
    return { ports, moved, release: () => claim.server.close() };
  } catch (fault) {
    claim.server.close();
    throw fault;
  }
}

function portInUse(name: PortName, port: number): StackError {
  return new StackError('port_in_use', `port ${port}, configured for ${name}, is already in use`, [
    `find who listens there: ss -ltnp 'sport = :${port}'`,
    'configure another port, or auto, in temporal-dev.yaml',
  ]);
}

/**
 * The first port of a block stays bound by the supervisor for as long as it lives, so two stacks that choose their ports
 * at the same moment cannot choose the same ones.
 */
async function claimBlock(remembered: number | undefined): Promise<{ port: number; server: Server }> {
  if (remembered !== undefined) {
    const server = await bind(remembered);
    if (server) return { port: remembered, server };
  }
  for (let attempt = 0; attempt < blockAttempts; attempt += 1) {
    const port = firstPort + blockSize * randomInt(blocks);
    const server = await bind(port);
    if (server) return { port, server };
  }
  throw new StackError('port_in_use', `no free block of ports was found from ${firstPort} on`, [
    'stop something that listens on loopback: ss -ltnp',
  ]);
}

async function nextFree(name: PortName, claim: number, taken: ReadonlySet<number>): Promise<number> {
  for (let port = claim + 1; port < claim + blockSize; port += 1) {
    if (!taken.has(port) && (await isFree(name, port))) return port;
  }
  throw new StackError(
    'port_in_use',
    `the ports from ${claim} to ${claim + blockSize - 1} are nearly all in use`,
    ['remove ports.json in the data folder, so that another block is chosen'],
  );
}

async function isFree(name: PortName, port: number): Promise<boolean> {
  const distance = derivedPorts[name];
  return (await canBind(port)) && (distance === undefined || (await canBind(port + distance)));
}

async function canBind(port: number): Promise<boolean> {
  const server = await bind(port);
  if (!server) return false;
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  await promise;
  return true;
}

function bind(port: number): Promise<Server | undefined> {
  const { promise, resolve } = Promise.withResolvers<Server | undefined>();
  const server = createServer((socket) => socket.destroy());
  server.unref();
  server.once('error', () => resolve(undefined));
  server.listen({ host: loopback, port, exclusive: true }, () => resolve(server));
  return promise;
}
