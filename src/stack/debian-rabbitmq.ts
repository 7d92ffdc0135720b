import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DownloadContext, runClient } from './download-context.ts';
import { StackError } from './stack-error.ts';

/** Where a RabbitMQ and its Erlang are. */
export interface RabbitFiles {
  /** The `rabbitmq-server` script itself, not a distribution's wrapper that switches users. */
  server: string;
  /** The folder of `erl` and `epmd`. */
  erlangBin: string;
  version: string;
}

/**
 * Downloads the distribution's RabbitMQ and Erlang into `folder` and unpacks them there: by apt, which verifies them, as
 * any user, with lists and archives of its own, installing nothing. Throws `download_failed`.
 */
export async function downloadDebianRabbit(folder: string, context: DownloadContext): Promise<void> {
  const state = join(folder, 'apt');
  for (const part of ['state/lists/partial', 'cache/archives/partial'])
    mkdirSync(join(state, part), { recursive: true });
  const options = [
    `Dir::State=${join(state, 'state')}`,
    'Dir::State::status=/var/lib/dpkg/status',
    `Dir::Cache=${join(state, 'cache')}`,
    'APT::Sandbox::User=', // root may not hand the private folders to apt's own user
  ].flatMap((option) => ['-o', option]);
  await runClient(context, folder, 'apt-get', ['update', '-qq', ...options]);
  const closure = await runClient(context, folder, 'apt-cache', [
    'depends',
    '--recurse',
    '--no-recommends',
    '--no-suggests',
    '--no-conflicts',
    '--no-breaks',
    '--no-replaces',
    '--no-enhances',
    ...options,
    'rabbitmq-server',
  ]);
  const erlang = new Set(closure.match(/^erlang-[a-z0-9-]+$/gm) ?? []);
  const packages = join(folder, 'packages');
  mkdirSync(packages);
  await runClient(context, packages, 'apt-get', [
    'download',
    '-qq',
    ...options,
    'rabbitmq-server',
    ...erlang,
  ]);
  for (const file of readdirSync(packages)) {
    await runClient(context, folder, 'dpkg-deb', ['-x', join(packages, file), folder]);
  }
  rmSync(packages, { recursive: true });
  rmSync(state, { recursive: true });
  makeErlangRelocatable(folder);
  await requireErlangRuns(folder, context);
}

/** The files of an unpacked download; undefined when it is not one. */
export function debianRabbitFiles(folder: string): RabbitFiles | undefined {
  const releases = join(folder, 'usr/lib/rabbitmq/lib');
  const [release] = existsSync(releases) ? readdirSync(releases) : [];
  if (!release) return undefined;
  return {
    server: join(releases, release, 'sbin/rabbitmq-server'),
    erlangBin: join(folder, 'usr/lib/erlang/bin'),
    version: release.slice('rabbitmq_server-'.length),
  };
}

/** Debian's `erl` has its installed place written into it; it is told to look where it lies instead. */
function makeErlangRelocatable(folder: string): void {
  const script = join(folder, 'usr/lib/erlang/bin/erl');
  const text = readFileSync(script, 'utf8');
  const patched = text.replaceAll(/^(\s*)ROOTDIR=.*$/gm, '$1ROOTDIR="$(cd "$(dirname "$0")/.." && pwd)"');
  if (patched === text) throw new StackError('download_failed', `${script} has no ROOTDIR to patch`);
  writeFileSync(script, patched);
}

/** Libraries that apt would have installed beside the packages may be missing here; better said now than at start. */
async function requireErlangRuns(folder: string, context: DownloadContext): Promise<void> {
  const erl = join(folder, 'usr/lib/erlang/bin/erl');
  const program = 'ok = crypto:start(), halt(0).';
  try {
    await runClient(context, folder, erl, ['-noinput', '-boot', 'start_clean', '-eval', program]);
  } catch (fault) {
    context.signal.throwIfAborted();
    throw new StackError(
      'download_failed',
      `the downloaded Erlang does not run here: ${(fault as Error).message}`,
      ['install the library it names by the package manager'],
    );
  }
}
