import { execFile } from 'node:child_process';
import { accessSync, constants, realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const answersWithinMs = 10_000;

/** The file that a program's name means by PATH, links resolved; undefined when there is none. */
export function findProgram(name: string, environment: NodeJS.ProcessEnv): string | undefined {
  for (const folder of (environment['PATH'] ?? '').split(delimiter)) {
    if (!isAbsolute(folder)) continue;
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return realpathSync(file);
    } catch {
      // not in this folder
    }
  }
  return undefined;
}

/** The first version number in what `file args…` prints; undefined when it does not run or prints none. */
export async function askVersion(file: string, args: readonly string[]): Promise<string | undefined> {
  try {
    const { stdout } = await run(file, args, { timeout: answersWithinMs, encoding: 'utf8' });
    return /\d+(?:\.\d+)+/.exec(stdout)?.[0];
  } catch {
    return undefined;
  }
}

/** Whether `version` is at least `minimum`, both dotted numbers. */
export function isAtLeast(version: string, minimum: string): boolean {
  const parts = (text: string): number[] => text.split('.').map(Number);
  const [found, wanted] = [parts(version), parts(minimum)];
  for (let index = 0; index < wanted.length; index += 1) {
    const difference = (found[index] ?? 0) - (wanted[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
