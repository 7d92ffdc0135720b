import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Replaces a file in one step; nobody but its owner may read it. */
export function writePrivateText(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fresh = `${path}.new`;
  writeFileSync(fresh, text, { mode: 0o600 });
  // One that was left over has kept its own mode.
  chmodSync(fresh, 0o600);
  renameSync(fresh, path);
}
