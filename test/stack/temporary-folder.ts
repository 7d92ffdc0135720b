import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of the calling test file, removed when its tests have ended. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sonar-stack-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
