import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '../../scripts/check/tool.ts';
import { checkout, inCheckout } from '../../scripts/checkout.ts';

/** A copy of what git knows of this checkout: mutants are made there, never in the checkout itself. */
export async function copyCheckout(): Promise<{ folder: string } & AsyncDisposable> {
  const listing = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard']);
  if (!listing.ok) throw new Error(`git could not list the checkout: ${listing.output}`);
  const folder = mkdtempSync(join(tmpdir(), 'sonar-mutants-'));
  for (const file of new Set(listing.stdout.split('\0'))) {
    // Removed, and not yet committed as removed.
    if (file === '' || !statSync(inCheckout(file), { throwIfNoEntry: false })?.isFile()) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(checkout, file), join(folder, file));
  }
  symlinkSync(inCheckout('node_modules'), join(folder, 'node_modules'));
  return {
    folder,
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** @throws Error with git's words where the patch does not fit. */
export async function applyPatch(folder: string, patch: string, reverse = false): Promise<void> {
  const result = await run('git', ['apply', ...(reverse ? ['--reverse'] : []), patch], folder);
  if (!result.ok) throw new Error(`${patch} does not apply: ${result.output.trim()}`);
}
