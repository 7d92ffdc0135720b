import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const checkout = dirname(dirname(import.meta.dirname));
const cache = join(checkout, '.cache');
const bundlePath = join(cache, 'workflow-bundle.js');
const keyPath = join(cache, 'workflow-bundle.key');
const lockPath = join(cache, 'workflow-bundle.lock');

/** What a bundle is made of. The lock file stands for the SDK and the bundler. */
const sources = [
  'workflows/**/*.ts',
  'src/contracts/**/*.ts',
  'src/domain/**/*.ts',
  'package-lock.json',
  'package.json',
];

const lockPollMs = 100;
/** A build takes 2–8 s. A lock this old belongs to a builder that hangs, and waiting longer helps nobody. */
const lockStaleMs = 120_000;

/**
 * The file with the code of all workflows, for `workflowBundle: {codePath}`. Bundling takes seconds, so it happens
 * once per state of the sources, whichever process asks first; the others wait for it. Throws with the bundler's
 * own words when a workflow reaches what it may not.
 */
export async function workflowBundlePath(): Promise<string> {
  const key = sourcesKey();
  await mkdir(cache, { recursive: true });
  while (!(await isCurrent(key))) {
    if (await takeLock()) {
      try {
        if (!(await isCurrent(key))) await build(key);
      } finally {
        await rm(lockPath, { force: true });
      }
    } else {
      await sleep(lockPollMs);
      await dropStaleLock();
    }
  }
  return bundlePath;
}

/** The source map holds absolute paths, hence the checkout's own path in the key. */
function sourcesKey(): string {
  const hash = createHash('sha256').update(checkout);
  for (const file of sources.flatMap((pattern) => globSync(pattern, { cwd: checkout })).toSorted()) {
    hash.update(`\0${file}\0`).update(readFileSync(join(checkout, file)));
  }
  return hash.digest('hex');
}

/** The key is written last and removed first: a key that fits proves a whole bundle. */
async function isCurrent(key: string): Promise<boolean> {
  return (await readIfThere(keyPath)) === key && (await stat(bundlePath).catch(nullIfMissing)) !== null;
}

async function build(key: string): Promise<void> {
  // Loading the SDK takes longer than finding a bundle that is already there.
  const { bundleWorkflowCode, DefaultLogger } = await import('@temporalio/worker');
  const complaints: string[] = [];
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(checkout, 'workflows', 'index.ts'),
    logger: new DefaultLogger('ERROR', ({ message }) => complaints.push(message)),
  }).catch((error: unknown) => {
    throw new Error(`the workflows do not bundle\n${complaints.join('\n')}`, { cause: error });
  });
  const unfinished = `${bundlePath}.${process.pid}`;
  await writeFile(unfinished, code);
  await rm(keyPath, { force: true });
  await rename(unfinished, bundlePath);
  await writeFile(`${keyPath}.${process.pid}`, key);
  await rename(`${keyPath}.${process.pid}`, keyPath);
}

async function takeLock(): Promise<boolean> {
  try {
    await using lock = await open(lockPath, 'wx');
    await lock.writeFile(String(process.pid));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Two waiters may drop it at once and both build; the bundle is the same and each file is replaced whole. */
async function dropStaleLock(): Promise<void> {
  const lock = await stat(lockPath).catch(nullIfMissing);
  if (lock === null) return;
  const owner = Number(await readIfThere(lockPath));
  const old = Date.now() - lock.mtimeMs > lockStaleMs;
  if (old || (owner > 0 && !isAlive(owner))) await rm(lockPath, { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

const readIfThere = (path: string): Promise<string | null> => readFile(path, 'utf8').catch(nullIfMissing);

function nullIfMissing(error: unknown): null {
  if (codeOf(error) === 'ENOENT') return null;
  throw error;
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException | null)?.code;
