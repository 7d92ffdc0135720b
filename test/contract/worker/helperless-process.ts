// The spawn helper cannot be started for a while: here its program is not there, and a machine without a process to
// spare goes the same way.
import { mkdirSync } from 'node:fs';
import { createLogger } from '#sonar/platform/logger.ts';
import { createSpawner } from '#sonar/worker/spawner.ts';

const folder = process.argv[2] as string;
mkdirSync(folder, { recursive: true });
const node = process.execPath;
process.execPath = '/nonexistent/node';
const spawner = createSpawner({ groups: folder, work: folder }, createLogger('test', 'silent'));
spawner.prepare();
const stream = { path: null, capBytes: 10, headBytes: 10 };
const run = (id: string) =>
  spawner.run(
    {
      id,
      argv: ['/bin/true'],
      env: {},
      cwd: folder,
      stdinPath: null,
      stdout: stream,
      stderr: stream,
      timeoutMs: 10_000,
      graceMs: 100,
    },
    () => undefined,
  );
const seen: string[] = [];
const bounded = async (what: Promise<string>) => {
  const never = new Promise<string>((resolve) => setTimeout(resolve, 8_000, 'never'));
  seen.push(await Promise.race([what, never]));
  if (seen.at(-1) === 'never') end();
};
function end(): never {
  console.log(JSON.stringify(seen));
  process.exit(0);
}

await bounded(run('waits').ended.then(({ kind }) => kind));
const ended = run('is ended');
ended.end(0);
await bounded(ended.ended.then(({ kind }) => kind));
process.execPath = node;
await bounded(run('runs').ended.then(({ kind }) => kind));
await bounded(spawner.stop().then(() => 'stopped'));
end();
