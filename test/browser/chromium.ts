// The browser that the machine has. CI installs one; elsewhere the project is left out where there is none, see
// jest.config.mjs: no download can be had from a registry of packages alone.
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const names = ['chromium', 'chromium-browser', 'google-chrome'];

/** @throws Error where PATH has no Chromium. */
function chromiumPath(path: string = process.env.PATH ?? ''): string {
  for (const folder of path.split(':'))
    for (const name of names) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // Not there: the next one.
      }
    }
  throw new Error(
    `no Chromium on PATH (${names.join(', ')}); install one, as CI does: apt-get install chromium`,
  );
}

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: chromiumPath(),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
