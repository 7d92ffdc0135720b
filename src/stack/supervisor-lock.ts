import { createHash } from 'node:crypto';
import { readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { identifyProcess, isAlive, type ProcessIdentity } from './process-identity.ts';
import { StackError } from './stack-error.ts';

export interface SupervisorLock {
  release(): void;
}

const contentionMs = 5_000;

/**
 * Makes this process the one supervisor of a data folder. The holder is written down as pid and start time, so a dead
 * holder's recycled pid is not believed. Throws `already_running` naming the live holder.
 */
export async function lockDataDirectory(dataDir: string): Promise<SupervisorLock> {
  const file = join(dataDir, 'supervisor.json');
  const self = identifyProcess(process.pid);
  if (!self)
    throw new StackError('data_unusable', `the start time of process ${process.pid} could not be read`);
  const turn = await takeTurn(realpathSync(dataDir));
  try {
    const holder = readHolder(file);
    if (holder && isAlive(holder)) throw alreadyRunning(dataDir, holder.pid);
    writeFileSync(`${file}.new`, JSON.stringify(self), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } finally {
    turn?.close();
  }
  return {
    release() {
      if (readHolder(file)?.startedAt === self.startedAt) rmSync(file, { force: true });
    },
  };
}

function readHolder(file: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}

function alreadyRunning(dataDir: string, pid: number): StackError {
  return new StackError(
    'already_running',
    `the stack in ${dataDir} is already up, supervised by process ${pid}`,
    [`use it as it is, or stop it: kill ${pid}`, 'start a second stack beside it in another data folder'],
  );
}

/**
 * Judging the file and replacing it is two steps, so contenders take turns by the name of an abstract socket, which the
 * kernel gives to one process only and takes back when that process dies. Other systems have none: there the two steps
 * are a few microseconds apart.
 */
async function takeTurn(path: string): Promise<Server | undefined> {
  if (process.platform !== 'linux') return undefined;
  const name = `\0sonar-stack-${createHash('sha256').update(path).digest('hex').slice(0, 40)}`;
  const until = performance.now() + contentionMs;
  while (performance.now() < until) {
    const server = await listenOn(name);
    if (server) return server;
    await delay(10);
  }
  throw new StackError(
    'data_unusable',
    `another process has been locking ${path} for ${contentionMs / 1000} s`,
    ['wait for it to end and start again'],
  );
}

function listenOn(name: string): Promise<Server | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Server | undefined>();
  const server = createServer();
  server.on('error', (fault: NodeJS.ErrnoException) =>
    fault.code === 'EADDRINUSE' ? resolve(undefined) : reject(fault),
  );
  server.listen(name, () => resolve(server));
  return promise;
}
