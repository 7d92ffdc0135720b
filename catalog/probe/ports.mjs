// Open TCP ports of one host: by nmap where it is installed, else by connecting. Both write nmap's XML.
import { spawn } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { writeFile } from 'node:fs/promises';
import { connect, isIP, isIPv6 } from 'node:net';
import {
  hostArgument,
  parseArguments,
  portList,
  portText,
  requiredOption,
  UsageError,
  wholeNumber,
} from './arguments.mjs';
import { nmapXml } from './nmap-xml.mjs';

const engines = ['auto', 'nmap', 'connect'];

/** @param {readonly string[]} args @returns the exit code */
export async function scanPorts(args) {
  const { options, positional } = parseArguments(
    args,
    ['ports', 'xml', 'engine', 'timeout-ms', 'concurrency'],
    1,
  );
  const host = hostArgument(positional[0]);
  const ports = portList(requiredOption(options, 'ports'));
  const xml = requiredOption(options, 'xml');
  const timeoutMs = wholeNumber(options.get('timeout-ms') ?? '1500', '--timeout-ms', 1, 60_000);
  const concurrency = wholeNumber(options.get('concurrency') ?? '256', '--concurrency', 1, 4_096);
  const engine = options.get('engine') ?? 'auto';
  if (!engines.includes(engine)) throw new UsageError(`--engine is one of ${engines.join(', ')}`);
  if (engine !== 'connect') {
    const code = await runNmap(host, ports, xml);
    if (code !== null) return code;
    if (engine === 'nmap') throw new Error(`nmap is not on the PATH (${process.env.PATH ?? ''})`);
  }
  const startedAt = Date.now();
  const address = isIP(host) === 0 ? (await lookup(host)).address : host;
  const states = await connectAll(address, ports, { timeoutMs, concurrency });
  await writeFile(xml, nmapXml({ host, address, ports, states, startedAt, endedAt: Date.now() }));
  return 0;
}

/** The exit code, or null when there is no nmap. @param {string} host @param {number[]} ports @param {string} xml */
function runNmap(host, ports, xml) {
  const family = isIPv6(host) ? ['-6'] : [];
  const args = ['-sT', '-Pn', '-n', ...family, '-p', portText(ports), '-oX', xml, host];
  return new Promise((resolve, reject) => {
    const child = spawn('nmap', args, { stdio: ['ignore', 'inherit', 'inherit'] });
    child.on('error', (error) =>
      error.code === 'ENOENT'
        ? resolve(null)
        : reject(new Error(`nmap could not be started: ${error.message}`)),
    );
    child.on('close', (code) => resolve(code ?? 1));
  });
}

/**
 * The state of each port, in the order given.
 * @param {string} address
 * @param {readonly number[]} ports
 * @param {{timeoutMs: number, concurrency: number}} limits
 */
async function connectAll(address, ports, { timeoutMs, concurrency }) {
  const states = Array.from({ length: ports.length });
  let next = 0;
  const scanNext = async () => {
    for (let index = next++; index < ports.length; index = next++) {
      states[index] = await connectOne(address, ports[index], timeoutMs);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, ports.length) }, scanNext));
  return states;
}

/** @param {string} address @param {number} port @param {number} timeoutMs @returns {Promise<'open' | 'closed' | 'filtered'>} */
function connectOne(address, port, timeoutMs) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port });
    const end = (state) => {
      socket.destroy();
      resolve(state);
    };
    socket.setTimeout(timeoutMs, () => end('filtered'));
    socket.on('connect', () => {
      // On loopback the kernel may pick the port itself as the source: the socket then talks to itself.
      const toItself = socket.localPort === port && socket.localAddress === socket.remoteAddress;
      end(toItself ? 'closed' : 'open');
    });
    socket.on('error', (error) => {
      if (['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'EINVAL'].includes(error.code)) {
        // The fault is on this side: the port's state is unknown, and saying "closed" would be a lie.
        socket.destroy();
        reject(new Error(`cannot connect to ${address} port ${port}: ${error.code}`));
      } else end(error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET' ? 'closed' : 'filtered');
    });
  });
}
