// Runs a TypeScript entry of this checkout on the project's own Node: `node bin/run.mjs ENTRY [ARGS…]`.
// A fresh clone has no node_modules, so the lock file is installed first whenever it differs from what
// is installed. Plain JavaScript, because the machine's own Node may be too old to strip types.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, lstatSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lock = join(root, 'package-lock.json');
const installedLock = join(root, 'node_modules', '.sonar-installed-lock.json');
const minimumNode = 24;

function installIfStale() {
  // Installing would empty the folder that a link leads to, which belongs to somebody else.
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) return;
  if (existsSync(installedLock) && readFileSync(installedLock).equals(readFileSync(lock))) return;
  console.error('sonar: installing the packages of package-lock.json (npm ci)');
  const install = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (install.error)
    fail(`npm could not be run (${install.error.message}); install npm, or run "npm ci" in ${root}`);
  if (install.status !== 0)
    fail(`npm ci ended with ${install.status ?? install.signal}; mend its error above and run again`);
  copyFileSync(lock, installedLock);
}

function nodeBinary() {
  const bundled = join(root, 'node_modules', '.bin', 'node');
  if (existsSync(bundled)) return bundled;
  if (Number(process.versions.node.split('.')[0]) >= minimumNode) return process.execPath;
  return fail(
    `no Node ${minimumNode} for ${process.platform}-${process.arch} in the lock file; install Node ${minimumNode} or newer and run again`,
  );
}

/** @returns {never} */
function fail(message) {
  console.error(`sonar: ${message}`);
  process.exit(1);
}

const [entry, ...args] = process.argv.slice(2);
if (!entry) fail('usage: node bin/run.mjs ENTRY [ARGS…]');
installIfStale();
const node = nodeBinary();
const child = spawn(
  node,
  [
    '--disable-warning=ExperimentalWarning',
    '--import',
    new URL('./end-with-parent.mjs', import.meta.url).href,
    resolve(root, entry),
    ...args,
  ],
  {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, PATH: `${dirname(node)}:${process.env.PATH ?? ''}` },
  },
);
// A terminal's Ctrl-C reaches the whole group; a signal sent to this process alone is passed on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
// Under `npm run` the npm process is what a person sees and may kill. Elsewhere the parent may be a shell
// that ends on purpose, with this left running in the background.
if (process.env.npm_lifecycle_event !== undefined) endWithNpm();
child.on('error', (error) => fail(`${node} could not be run: ${error.message}`));
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else process.exit(code ?? 1);
});

/** Gives the child up when npm is gone, or the shell that npm puts between: the child's channel closes. */
function endWithNpm() {
  const ancestors = () => `${process.ppid} ${parentOf(process.ppid)}`;
  const atStart = ancestors();
  setInterval(() => {
    if (ancestors() !== atStart) process.exit(1);
  }, 500).unref();
}

/** Empty where there is no /proc to ask. */
function parentOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')[1];
  } catch {
    return '';
  }
}
