import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ServiceData {
  folder: string;
  /** To be called when the service has been ready: from now on the data is kept. */
  keep(): void;
}

/**
 * The data folder in a service's own folder. What a first start made that never got ready (it was killed, say) may be
 * half made, can hold nothing yet and would fail every later start: it is dropped.
 */
export function openServiceData(directory: string): ServiceData {
  const folder = join(directory, 'data');
  const mark = join(directory, 'data-is-whole');
  if (!existsSync(mark)) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return { folder, keep: () => writeFileSync(mark, '') };
}
