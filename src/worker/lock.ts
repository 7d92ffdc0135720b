// One live process a name and directory. Each candidate puts down a file of its own and then looks for others, so
// there is no stale file to take over and nothing to race for: who sees another live one gives way, and two that
// start in the same instant may both give way, never both stay.
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import { processStart } from './process-trace.ts';

/** @throws SonarError `conflict` that names the process which holds the name, `configuration` where it cannot be put down. */
export async function takeLock(directory: string, name: string): Promise<{ release(): Promise<void> }> {
  const mine = `${process.pid}-${encodeURIComponent(processStart(process.pid) ?? '')}`;
  const path = join(directory, mine);
  // `wx` also refuses a second worker of the same name in this very process.
  await writeFile(path, '', { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw inUse(name, process.pid, directory, error);
    throw new SonarError(
      'configuration',
      `the worker's folder ${directory} cannot be written (${messageOf(error)}); make room or give another --dir`,
      { cause: error },
    );
  });
  for (const other of await readdir(directory)) {
    if (other === mine) continue;
    const [pid, start = ''] = other.split(/-(.*)/s);
    if (processStart(Number(pid)) === decodeURIComponent(start)) {
      await rm(path, { force: true });
      throw inUse(name, Number(pid), directory);
    }
    await rm(join(directory, other), { force: true });
  }
  return { release: () => rm(path, { force: true }) };
}

function inUse(name: string, pid: number, directory: string, cause?: unknown): SonarError {
  return new SonarError(
    'conflict',
    `a worker named "${name}" already runs here as process ${pid}; stop it, or give this one another --name (lock: ${directory})`,
    { cause },
  );
}
