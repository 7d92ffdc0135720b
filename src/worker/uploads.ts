// Puts outputs where the api says. The key holds the attempt and the hash, and the URL is signed for exactly this
// size and for "only if it is not there": a second upload of the same bytes answers 412 and is as good as the first.
import { openAsBlob } from 'node:fs';
import type { UploadsAnswer } from '#sonar/contracts/worker-api.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { forEachOf } from './for-each-of.ts';
import type { OutputFile } from './outputs.ts';
import { transferTimeoutMs } from './transfer-time.ts';

export type UploadEnd =
  | { kind: 'done' }
  /** Try again later: those that are up are remembered. */
  | { kind: 'passing'; reason: string }
  /** The api's word on the request for URLs. */
  | { kind: 'refused'; status: number; code: string | null; detail: string };

/** The contract's bound for one request. */
const filesPerRequest = 100;
const filesAtOnce = 4;

export interface Uploader {
  /** One pass over what is not up yet. */
  upload(
    ask: (
      files: { size: number; sha256: string }[],
    ) => Promise<
      | { kind: 'answer'; value: UploadsAnswer }
      | { kind: 'unreachable'; reason: string }
      | Extract<UploadEnd, { kind: 'refused' }>
    >,
    signal: AbortSignal,
  ): Promise<UploadEnd>;
}

/** Equal files are uploaded once. */
export function createUploader(files: readonly OutputFile[]): Uploader {
  const waiting = new Map(files.map((file) => [file.entry.sha256, file]));

  return {
    async upload(ask, signal) {
      while (waiting.size > 0) {
        const batch = [...waiting.values()].slice(0, filesPerRequest);
        const answer = await ask(batch.map(({ entry }) => ({ size: entry.size, sha256: entry.sha256 })));
        if (answer.kind === 'refused') return answer;
        if (answer.kind === 'unreachable') return { kind: 'passing', reason: answer.reason };
        const targets = batch.map((file, index) => ({ file, target: answer.value.files[index] }));
        const failure = await forEachOf(targets, filesAtOnce, async ({ file, target }) => {
          if (target === undefined) return 'the api gave fewer URLs than files';
          const reason = await put(file, target, signal);
          if (reason === null) waiting.delete(file.entry.sha256);
          return reason;
        });
        if (failure !== null) return { kind: 'passing', reason: failure };
      }
      return { kind: 'done' };
    },
  };
}

/** Null when the object is there; else why not, for people. */
async function put(
  file: OutputFile,
  target: UploadsAnswer['files'][number],
  signal: AbortSignal,
): Promise<string | null> {
  try {
    // A blob has a length, so the body is not sent in chunks of unknown sum, which S3 refuses.
    const body = await openAsBlob(file.path);
    const response = await fetch(target.url, {
      method: 'PUT',
      body,
      headers: target.headers,
      signal: AbortSignal.any([signal, AbortSignal.timeout(transferTimeoutMs(file.entry.size))]),
    });
    // Read to its end either way, so that the connection can be used again.
    const text = (await response.text()).slice(0, 300);
    if (response.ok || response.status === 412) return null;
    return `the object store answered ${response.status} for ${file.entry.output}/${file.entry.path}: ${text}`;
  } catch (error) {
    const cause = (error as { cause?: unknown } | null)?.cause;
    return `${file.entry.output}/${file.entry.path}: ${messageOf(cause ?? error)}`;
  }
}
