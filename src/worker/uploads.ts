// Puts outputs where the api says. The key holds the attempt and the hash, and the URL is signed for exactly this
// size and for "only if it is not there": a second upload of the same bytes answers 412 and is as good as the first.
import { openAsBlob } from 'node:fs';
import type { UploadsAnswer } from '#sonar/contracts/worker-api.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { forEachOf } from './for-each-of.ts';
import { isUnchanged, type OutputFile } from './outputs.ts';
import { transferTimeoutMs } from './transfer-time.ts';

export type UploadEnd =
  /** All are up but those that are `lost`: no longer what the manifest says, or refused for good by the store. */
  | { kind: 'done'; lost: ReadonlyMap<string, string> }
  /** What is there cannot be read: this machine's fault. */
  | { kind: 'unreadable'; reason: string }
  /** Try again later: those that are up are remembered. */
  | { kind: 'passing'; reason: string }
  /** The api's word on the request for URLs. */
  | { kind: 'refused'; status: number; code: string | null; detail: string };

/** The contract's bound for one request. */
const filesPerRequest = 100;
const filesAtOnce = 4;
/** A refusal may pass (a URL that expired, a policy that is being changed): with the waits between, for minutes. */
const maxRefusals = 12;

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
  const refusals = new Map<string, number>();
  /** Why, by hash. */
  const lost = new Map<string, string>();

  function lose({ entry }: OutputFile, reason: string): null {
    waiting.delete(entry.sha256);
    lost.set(entry.sha256, `output ${entry.output}: ${entry.path} ${reason}`);
    return null;
  }

  /** Null when no more is to be done about the file. @throws faults of this machine, when they do not pass. */
  async function tryFile(file: OutputFile, target: Target, signal: AbortSignal): Promise<string | null> {
    const end = await put(file, target, signal);
    const { sha256 } = file.entry;
    if (end.kind === 'done') {
      waiting.delete(sha256);
      return null;
    }
    if (signal.aborted) return end.reason;
    const refused = (refusals.get(sha256) ?? 0) + 1;
    try {
      if (!(await isUnchanged(file, end.kind === 'refused')))
        return lose(file, 'changed or vanished after the command had ended');
    } catch (error) {
      refusals.set(sha256, refused);
      if (refused >= maxRefusals) throw error;
      return messageOf(error);
    }
    if (end.kind === 'refused') {
      refusals.set(sha256, refused);
      if (refused >= maxRefusals) return lose(file, `was refused again and again: ${end.reason}`);
    }
    return end.reason;
  }

  return {
    async upload(ask, signal) {
      while (waiting.size > 0) {
        const batch = [...waiting.values()].slice(0, filesPerRequest);
        const answer = await ask(batch.map(({ entry }) => ({ size: entry.size, sha256: entry.sha256 })));
        if (answer.kind === 'refused') return answer;
        if (answer.kind === 'unreachable') return { kind: 'passing', reason: answer.reason };
        const targets = batch.map((file, index) => ({ file, target: answer.value.files[index] }));
        let failure: string | null;
        try {
          failure = await forEachOf(targets, filesAtOnce, async ({ file, target }) =>
            target === undefined ? 'the api gave fewer URLs than files' : await tryFile(file, target, signal),
          );
        } catch (error) {
          return { kind: 'unreadable', reason: messageOf(error) };
        }
        if (failure !== null) return { kind: 'passing', reason: failure };
      }
      return { kind: 'done', lost };
    },
  };
}

type Target = UploadsAnswer['files'][number];
/** `refused`: the store, or the file under its reader, says that these are not the bytes that were announced. */
type PutEnd = { kind: 'done' } | { kind: 'refused' | 'passing'; reason: string };

async function put(file: OutputFile, target: Target, signal: AbortSignal): Promise<PutEnd> {
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
    const { ok, status } = response;
    if (ok || status === 412) return { kind: 'done' };
    const passing = status < 400 || status >= 500 || status === 408 || status === 429;
    return {
      kind: passing ? 'passing' : 'refused',
      reason: `the object store answered ${status} for ${file.entry.output}/${file.entry.path}: ${text}`,
    };
  } catch (error) {
    const cause = (error as { cause?: unknown } | null)?.cause ?? error;
    return {
      // A blob whose file changes while it is read.
      kind: (cause as { name?: unknown } | null)?.name === 'NotReadableError' ? 'refused' : 'passing',
      reason: `${file.entry.output}/${file.entry.path}: ${messageOf(cause)}`,
    };
  }
}
