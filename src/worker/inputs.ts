// Downloads what an attempt reads. URLs come in pages, are renewed when they expire, and every byte is checked.
import { createHash } from 'node:crypto';
import { lstat, mkdir, open, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Dispatch } from '#sonar/contracts/dispatch-message.ts';
import type { InputFile, InputsAnswer } from '#sonar/contracts/worker-api.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import { forEachOf } from './for-each-of.ts';
import { type AttemptFolders, type InputPaths, pathProblem } from './paths.ts';
import { bytesOf } from './response-bytes.ts';
import type { SharedFiles } from './shared-files.ts';
import { transferTimeoutMs } from './transfer-time.ts';

export type InputsEnd =
  | { kind: 'ready'; paths: InputPaths }
  /** No retry on this worker or another mends it. */
  | { kind: 'unavailable'; message: string }
  /** The object store did not answer for the whole time given. */
  | { kind: 'unreachable'; message: string }
  | { kind: 'aborted' };

export type PageEnd =
  | { kind: 'page'; page: InputsAnswer }
  | { kind: 'unavailable'; message: string }
  | { kind: 'aborted' };

export interface InputsTransfer {
  /** Asks the api for a page until it answers. */
  page(input: string, after: string | null): Promise<PageEnd>;
  signal: AbortSignal;
  forMs: number;
  retryFirstMs: number;
  retryMaxMs: number;
}

const filesAtOnce = 4;
const maxMismatches = 3;
const maxRenewals = 5;

/** @param held takes the digests of shared files, which the attempt holds until its command has ended, also after a throw */
export async function downloadInputs(
  inputs: Dispatch['inputs'],
  folders: AttemptFolders,
  shared: SharedFiles,
  transfer: InputsTransfer,
  held: string[],
): Promise<InputsEnd> {
  const paths = new Map<string, string>();
  for (const input of inputs) {
    const { name, digest } = input;
    let folder = join(folders.in, name);
    let end: InputsEnd | null = null;
    if (digest === undefined) {
      await mkdir(folder, { recursive: true });
      end = await downloadInput(input, folder, transfer);
    } else {
      const used = await shared.use(digest, (part) => downloadInput(input, part, transfer));
      if ('folder' in used) {
        held.push(digest);
        ({ folder } = used);
      } else ({ end } = used);
    }
    if (end !== null) return end;
    const [only] = input.as === 'file' ? await readdir(folder) : [];
    paths.set(name, input.as === 'directory' || only === undefined ? folder : await fileBelow(folder, only));
  }
  return { kind: 'ready', paths };
}

/** The one file of an input: it may lie in folders of its own. */
async function fileBelow(folder: string, name: string): Promise<string> {
  const path = join(folder, name);
  if (!(await lstat(path)).isDirectory()) return path;
  const [next] = await readdir(path);
  return next === undefined ? path : fileBelow(path, next);
}

/** Null when all files of the input are there. */
async function downloadInput(
  { name, as }: Dispatch['inputs'][number],
  folder: string,
  transfer: InputsTransfer,
): Promise<InputsEnd | null> {
  let after: string | null = null;
  let files = 0;
  do {
    const answer = await transfer.page(name, after);
    if (answer.kind !== 'page') return answer;
    const { page } = answer;
    const end = await downloadPage(name, folder, after, page.files, transfer);
    if (end !== null) return end;
    files += page.files.length;
    if (page.next !== null && page.next === after)
      return { kind: 'unavailable', message: `input ${name}: the api gives the same page again and again` };
    after = page.next;
  } while (after !== null);
  return as === 'file' && files !== 1
    ? { kind: 'unavailable', message: `input ${name} is one file, but the api lists ${files}` }
    : null;
}

/** Null when every file of the page is there and right. */
async function downloadPage(
  input: string,
  folder: string,
  after: string | null,
  files: InputFile[],
  transfer: InputsTransfer,
): Promise<InputsEnd | null> {
  const urls = new Map(files.map(({ path, url }) => [path, url]));
  let renewing: Promise<PageEnd> | null = null;
  const renew = async (): Promise<PageEnd> => {
    renewing ??= transfer.page(input, after).finally(() => {
      renewing = null;
    });
    const answer = await renewing;
    if (answer.kind === 'page') for (const { path, url } of answer.page.files) urls.set(path, url);
    return answer;
  };
  return await forEachOf(files, filesAtOnce, async (file) => {
    const problem = pathProblem(file.path);
    if (problem !== null)
      return {
        kind: 'unavailable',
        message: `input ${input}: the path ${JSON.stringify(file.path)} ${problem}`,
      };
    return downloadFile(
      input,
      join(folder, file.path),
      file,
      () => urls.get(file.path) as string,
      renew,
      transfer,
    );
  });
}

async function downloadFile(
  input: string,
  target: string,
  file: InputFile,
  url: () => string,
  renew: () => Promise<PageEnd>,
  transfer: InputsTransfer,
): Promise<InputsEnd | null> {
  const deadline = performance.now() + transfer.forMs;
  const name = `input ${input}, file ${file.path}`;
  let mismatches = 0;
  let renewals = 0;
  let reason = '';
  for (let tried = 0; performance.now() < deadline || tried === 0; tried += 1) {
    if (tried > 0)
      await pause(
        jittered(backoffMs(tried - 1, transfer.retryFirstMs, transfer.retryMaxMs), Math.random()),
        transfer.signal,
      );
    if (transfer.signal.aborted) return { kind: 'aborted' };
    const end = await fetchOnce(url(), target, file, transfer.signal);
    if (end.kind === 'done') return null;
    if (end.kind === 'missing')
      return { kind: 'unavailable', message: `${name} is no longer in the object store` };
    if (end.kind === 'unusable') return { kind: 'unavailable', message: `${name}: ${end.reason}` };
    if (end.kind === 'mismatch') {
      mismatches += 1;
      if (mismatches >= maxMismatches) return { kind: 'unavailable', message: `${name}: ${end.reason}` };
    }
    if (end.kind === 'expired') {
      renewals += 1;
      if (renewals > maxRenewals)
        return { kind: 'unavailable', message: `${name}: the object store refuses every new URL (403)` };
      const answer = await renew();
      if (answer.kind !== 'page') return answer;
    }
    reason = end.reason;
  }
  return { kind: 'unreachable', message: `${name}: ${reason}` };
}

type FetchEnd =
  | { kind: 'done' }
  | { kind: 'missing' | 'expired' | 'mismatch' | 'unusable' | 'passing'; reason: string };

async function fetchOnce(
  url: string,
  target: string,
  file: InputFile,
  signal: AbortSignal,
): Promise<FetchEnd> {
  try {
    await mkdir(dirname(target), { recursive: true });
    await rm(target, { force: true });
    // `wx` follows no link and reuses no file.
    await using out = await open(target, 'wx', 0o600);
    const response = await fetch(url, {
      headers: { 'accept-encoding': 'identity' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(transferTimeoutMs(file.size))]),
    });
    if (!response.ok) {
      // Read to its end, so that the connection can be used again.
      await response.arrayBuffer();
      const reason = `the object store answered ${response.status}`;
      if (response.status === 404) return { kind: 'missing', reason };
      return { kind: response.status === 403 ? 'expired' : 'passing', reason };
    }
    const hash = createHash('sha256');
    let size = 0;
    for await (const chunk of bytesOf(response)) {
      size += chunk.length;
      if (size > file.size)
        return { kind: 'mismatch', reason: `more than the ${file.size} bytes that the api announced` };
      hash.update(chunk);
      await out.writeFile(chunk);
    }
    if (size < file.size) return { kind: 'mismatch', reason: `${size} bytes instead of ${file.size}` };
    if (hash.digest('hex') !== file.sha256)
      return { kind: 'mismatch', reason: 'its bytes do not have the SHA-256 that the api announced' };
    return { kind: 'done' };
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    // Two paths that cannot both be: `a` and `a/b`.
    if (code === 'ENOTDIR' || code === 'EISDIR' || code === 'EEXIST')
      return { kind: 'unusable', reason: `its path clashes with another file's (${code})` };
    const cause = (error as { cause?: unknown } | null)?.cause;
    return { kind: 'passing', reason: messageOf(cause ?? error) };
  }
}
