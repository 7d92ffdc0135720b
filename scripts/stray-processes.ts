import { readdirSync, readFileSync } from 'node:fs';

/** Every process that a test run starts inherits this variable; what still carries it afterwards was left behind. */
export const runMark = 'SONAR_TEST_RUN';

export interface StrayProcess {
  pid: number;
  command: string;
}

/** Processes that carry the mark of run `id`. Only Linux shows environments; elsewhere there is none to find. */
export function strayProcesses(id: string): StrayProcess[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => read(pid, 'environ').split('\0').includes(`${runMark}=${id}`))
    .map((pid) => ({ pid: Number(pid), command: read(pid, 'cmdline').replaceAll('\0', ' ').trim() }))
    .filter(({ command }) => command !== '');
}

export function kill({ pid }: StrayProcess): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}

/** Empty when the process has ended or belongs to somebody else. */
function read(pid: string, file: 'environ' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
