// A command that runs until it is told or made to end.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import { poll } from './watch.ts';
import type { Workbench } from './workbench.ts';

/** Resolves when it runs. A script may wait for the file `end` in its folder, which `end` makes. */
export async function startLong(
  bench: Workbench,
  script = 'exec sleep 300',
): Promise<DispatchMessage & { end(): void }> {
  const mark = join(bench.directory, 'mark');
  const message = bench.message(['/bin/sh', '-c', `echo $PWD > ${mark}; ${script}`]);
  bench.puller.push(message);
  const home = () => {
    try {
      return readFileSync(mark, 'utf8').trim();
    } catch {
      return '';
    }
  };
  await poll('the command runs', () => home() !== '');
  return { ...message, end: () => writeFileSync(join(home(), 'end'), '') };
}
