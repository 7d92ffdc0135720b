import { readFileSync } from 'node:fs';

/** What `workflow_coordination.executor.build` shows: the package's version. */
export function buildName(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}
