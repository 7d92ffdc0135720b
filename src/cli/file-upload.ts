// Files on this machine become files that Sonar has stored: hashed here, put by presigned URLs, confirmed by the api.
import { createHash } from 'node:crypto';
import { createReadStream, openAsBlob } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Definition } from '#sonar/contracts/definition.ts';
import type { UploadedFiles } from '#sonar/contracts/scan-api.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import type { ApiClient } from './api-client.ts';

interface LocalFile {
  /** Where it is on this machine. */
  file: string;
  path: string;
  sha256: string;
  size: number;
}

/** The contract's bounds. */
const filesPerRequest = 100;
const maxEntries = 100_000;
const putsAtOnce = 8;

/**
 * Uploads what a definition's `files` name, relative to the definition's own file.
 * @throws SonarError `usage` that names the first that cannot be read.
 */
export async function uploadDefinitionFiles(
  client: ApiClient,
  definition: Pick<Definition, 'files'>,
  definitionFile: string,
): Promise<UploadedFiles> {
  const uploaded: UploadedFiles = {};
  for (const [name, { path }] of Object.entries(definition.files)) {
    const root = resolve(dirname(definitionFile), path);
    const { kind, files } = await filesAt(root, `files.${name}`, path);
    await storeFiles(client, files);
    uploaded[name] = { kind, entries: files.map((file) => ({ path: file.path, sha256: file.sha256 })) };
  }
  return uploaded;
}

/** Uploads one file. @returns its hash, by which a scan names it. */
export async function uploadFile(client: ApiClient, file: string, option: string): Promise<string> {
  const { kind, files } = await filesAt(file, option, file);
  const [only] = files;
  if (kind !== 'file' || only === undefined) throw new SonarError('usage', `${option}: ${file} is no file`);
  await storeFiles(client, files);
  return only.sha256;
}

async function filesAt(
  root: string,
  what: string,
  written: string,
): Promise<{ kind: 'file' | 'directory'; files: LocalFile[] }> {
  try {
    const stats = await stat(root);
    if (stats.isFile()) return { kind: 'file', files: [await localFile(root, basename(root))] };
    if (!stats.isDirectory())
      throw new SonarError('usage', `${what}: ${written} is neither a file nor a folder`);
    const files: LocalFile[] = [];
    for (const path of await pathsBelow(root, '')) files.push(await localFile(join(root, path), path));
    if (files.length > maxEntries)
      throw new SonarError('usage', `${what}: ${written} has more than ${maxEntries} files`);
    return { kind: 'directory', files };
  } catch (error) {
    if (typeof (error as { code?: unknown }).code !== 'string' || error instanceof SonarError) throw error;
    throw new SonarError('usage', `${what}: ${written} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Files below a folder, sorted. Links are not followed, and a repository's own folder is left out. */
async function pathsBelow(root: string, folder: string): Promise<string[]> {
  const paths: string[] = [];
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== '.git') paths.push(...(await pathsBelow(root, path)));
    else if (entry.isFile()) paths.push(path);
  }
  return paths.toSorted();
}

async function localFile(file: string, path: string): Promise<LocalFile> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of createReadStream(file)) {
    hash.update(chunk as Buffer);
    size += (chunk as Buffer).length;
  }
  return { file, path, size, sha256: hash.digest('hex') };
}

/** Equal files are stored once, and not at all where Sonar has them. */
async function storeFiles(client: ApiClient, files: readonly LocalFile[]): Promise<void> {
  const distinct = [...new Map(files.map((file) => [file.sha256, file])).values()];
  for (let at = 0; at < distinct.length; at += filesPerRequest) {
    const page = distinct.slice(at, at + filesPerRequest);
    const places = await client.filePlaces(page.map(({ sha256, size }) => ({ sha256, size })));
    const missing = page.flatMap((file, index) => {
      const place = places.files[index];
      return place ? [{ ...file, ...place }] : [];
    });
    for (let from = 0; from < missing.length; from += putsAtOnce)
      await Promise.all(missing.slice(from, from + putsAtOnce).map(put));
    const confirmed = missing.map(({ sha256, size, upload }) => ({ sha256, size, upload }));
    if (confirmed.length > 0) await client.confirmFiles(confirmed);
  }
}

async function put(file: LocalFile & { url: string; headers: Record<string, string> }): Promise<void> {
  const { 'content-length': _, ...headers } = file.headers;
  let status: number;
  try {
    const body = await openAsBlob(file.file);
    const answer = await fetch(file.url, { method: 'PUT', headers, body, redirect: 'manual' });
    await answer.arrayBuffer();
    ({ status } = answer);
  } catch (error) {
    throw new SonarError('unreachable', `${file.path} could not be uploaded: ${messageOf(error)}`, {
      cause: error,
    });
  }
  if (status === 412 || (status >= 200 && status < 300)) return;
  throw new SonarError(
    'unreachable',
    `${file.path} could not be uploaded: the object store answered ${status}`,
  );
}
