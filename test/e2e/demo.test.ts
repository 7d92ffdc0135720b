// The demo as a person runs it, on a stack of its own: its inventory is what its servers really offer, with nmap
// and with the bundled scanner; and a SIGKILL leaves nothing behind.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './sonar-processes.ts';

const root = join(import.meta.dirname, '..', '..');
const directory = mkdtempSync(join(tmpdir(), 'sonar-demo-'));
const data = join(directory, 'data');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function startDemo(
  words: readonly string[],
  environment: Record<string, string> = {},
): { child: ChildProcessWithoutNullStreams; told: () => string } {
  const child = spawn(
    process.execPath,
    [join(root, 'bin', 'run.mjs'), 'demo/main.ts', '--data', data, ...words],
    {
      cwd: root,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: process.env.HOME ?? '',
        SONAR_TEST_RUN: process.env.SONAR_TEST_RUN ?? '',
        ...environment,
      },
    },
  );
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  return { child, told: () => text };
}

async function demoReport(environment: Record<string, string> = {}) {
  const { child, told } = startDemo(['--json'], environment);
  let stdout = '';
  child.stdout.on('data', (part: string) => (stdout += part));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the demo exited with ${code}: ${told().slice(-3_000)}`);
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as {
    scan: { status: string };
    tasks: Record<string, number>;
    inventory: Record<string, number>;
    seconds: number;
  };
}

const offered = {
  scan: { status: 'Completed' },
  // Four targets, six open ports, one address without any (no work), one report.
  tasks: { completed: 12, failed: 0, cancelled: 0, noWork: 1 },
  inventory: { address: 4, service: 6, endpoint: 5 },
};

// The demo itself compares every address, port, URL and title with its servers and fails on a difference.
test('with what PATH has', async () => {
  expect(await demoReport()).toMatchObject(offered);
});

test('without nmap on PATH, by the bundled scanner', async () => {
  const bin = join(directory, 'bin');
  symlinkTools(bin, ['node', 'npm', 'python3', 'sh', 'env', 'ps']);
  expect(await demoReport({ SONAR_DEMO_WORKER_PATH: bin })).toMatchObject(offered);
});

test('SIGKILL of the demo leaves no process, and the next start works', async () => {
  const { child, told } = startDemo(['--keep']);
  await until('the demo is kept up', () => told().includes('Kept up'), told);
  expect(processesOf(data).length).toBeGreaterThan(5);
  child.kill('SIGKILL');
  await once(child, 'exit');
  await until(
    'nothing of it runs',
    () => processesOf(data).length === 0,
    () => processesOf(data).join('\n'),
  );
  expect(await demoReport()).toMatchObject(offered);
});

function symlinkTools(bin: string, names: readonly string[]): void {
  mkdirSync(bin);
  for (const name of names) {
    const found = (process.env.PATH ?? '')
      .split(':')
      .map((folder) => join(folder, name))
      .find((path) => existsSync(path));
    if (found) symlinkSync(found, join(bin, name));
  }
}

/** Command lines of processes that name the demo's data folder. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return line.includes(folder) ? [line.slice(0, 200)] : [];
      } catch {
        return [];
      }
    });
}
