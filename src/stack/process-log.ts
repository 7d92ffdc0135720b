import { closeSync, fstatSync, openSync, readSync, renameSync, statSync } from 'node:fs';

const rotateAtBytes = 16 * 1024 * 1024;
const tailBytes = 16 * 1024;

/** Opens a log for appending and tells its length; one that has grown past 16 MiB is first set aside as `.1`. */
export function openLog(file: string): { descriptor: number; length: number } {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > rotateAtBytes) renameSync(file, `${file}.1`);
  const descriptor = openSync(file, 'a', 0o600);
  return { descriptor, length: fstatSync(descriptor).size };
}

/** The last `count` lines that are not empty and were written from byte `start` on. */
export function lastLines(file: string, start: number, count: number): string[] {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    return [];
  }
  try {
    const { size } = fstatSync(descriptor);
    const buffer = Buffer.alloc(Math.max(0, Math.min(size - start, tailBytes)));
    readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
    const lines = buffer.toString('utf8').split('\n');
    return lines.filter((line) => line.trim() !== '').slice(-count);
  } finally {
    closeSync(descriptor);
  }
}
