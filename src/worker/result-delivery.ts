// From a command that has ended to a disposition: uploads, the result on disk, the result sent, as often as it takes.
import { type Disposition, messageVersion, type Result } from '#sonar/contracts/worker-api.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import type { OutputFile } from './outputs.ts';
import { forgetResult, type StoredResult, storeResult } from './result-store.ts';
import { createUploader, type Uploader } from './uploads.ts';
import type { WorkerParts } from './worker-parts.ts';

export interface Deliverable {
  credential: string;
  /** Makes the body; called again without the files that cannot be uploaded, with why. */
  result(files: readonly OutputFile[], refusal: string | null): Result;
  files: readonly OutputFile[];
}

/** `null`: the signal aborted first; what was stored stays stored. */
export type DeliveryEnd =
  | { disposition: Disposition; detail: string }
  /** This machine cannot read its outputs any more; no result was sent. */
  | { disposition: 'unreadable'; detail: string }
  | null;

/** An outage does not make it give up: whoever waits for it sets the bound. */
export async function deliverResult(
  deliverable: Deliverable,
  parts: WorkerParts,
  signal: AbortSignal,
): Promise<DeliveryEnd> {
  const { config, gate, log } = parts;
  const uploader = createUploader(deliverable.files);
  let made: StoredResult | null = null;
  let stored = false;
  for (let tried = 0; !signal.aborted; tried += 1) {
    if (tried > 0)
      await pause(
        jittered(backoffMs(tried - 1, config.retryFirstMs, config.retryMaxMs), Math.random()),
        signal,
      );
    if (signal.aborted) break;
    if (made === null) {
      const ready = await uploadAll(deliverable, uploader, parts, signal);
      if (ready.kind === 'ended') return ready.end;
      if (ready.kind === 'passing') {
        if (ready.shut) gate.shut();
        log.warn(
          { operation: 'upload_failed', reason: ready.reason, tried },
          'upload failed; it is tried again',
        );
        continue;
      }
      made = {
        v: 1,
        attemptId: ready.result.attemptId,
        credential: deliverable.credential,
        body: JSON.stringify(ready.result),
      };
    }
    // A disk that takes no result is no reason to keep it from the api, which may: only a crash would now lose it.
    stored ||= await tryToStore(made, parts);
    const end = await sendResult(made, parts);
    if (end !== null) {
      await forget(made.attemptId, parts);
      return end;
    }
    gate.shut();
  }
  return null;
}

async function tryToStore(result: StoredResult, { directories, log }: WorkerParts): Promise<boolean> {
  try {
    await storeResult(directories.results, result);
    return true;
  } catch (error) {
    log.error(
      { operation: 'result_not_stored', attemptId: result.attemptId, reason: messageOf(error) },
      'disk refuses the result; it is sent all the same',
    );
    return false;
  }
}

/** What stays is sent once more by the next start, and told that it is a duplicate. */
async function forget(attemptId: string, { directories, log }: WorkerParts): Promise<void> {
  await forgetResult(directories.results, attemptId).catch((error: unknown) =>
    log.error(
      { operation: 'stored_result_kept', attemptId, reason: messageOf(error) },
      'the result was delivered but stays on disk',
    ),
  );
}

type Ready =
  | { kind: 'ready'; result: Result }
  | { kind: 'ended'; end: DeliveryEnd }
  | { kind: 'passing'; reason: string; shut: boolean };

async function uploadAll(
  deliverable: Deliverable,
  uploader: Uploader,
  parts: WorkerParts,
  signal: AbortSignal,
): Promise<Ready> {
  const result = deliverable.result(deliverable.files, null);
  const identity = {
    v: messageVersion,
    attemptId: result.attemptId,
    dispatchKey: result.dispatchKey,
    worker: result.worker,
    incarnationId: result.incarnationId,
  } as const;
  let apiAway = false;
  const end = await uploader.upload(async (files) => {
    const answer = await parts.api.uploads(deliverable.credential, { ...identity, files });
    apiAway = answer.kind === 'unreachable';
    return answer;
  }, signal);
  if (end.kind === 'done') {
    if (end.lost.size === 0) return { kind: 'ready', result };
    const left = deliverable.files.filter(({ entry }) => !end.lost.has(entry.sha256));
    return { kind: 'ready', result: deliverable.result(left, [...end.lost.values()].join('; ')) };
  }
  if (end.kind === 'unreadable')
    return { kind: 'ended', end: { disposition: 'unreadable', detail: end.reason } };
  if (end.kind === 'passing') return { kind: 'passing', reason: end.reason, shut: apiAway };
  const detail = `uploads refused: ${end.detail}`;
  switch (end.status) {
    case 404:
    case 409:
    case 410:
      return { kind: 'ended', end: { disposition: 'superseded', detail } };
    case 401:
    case 403:
      return { kind: 'ended', end: { disposition: 'rejected', detail } };
    default:
      // What the api will not take (too large, too many) is the command's fault, and the task must hear of it.
      return { kind: 'ready', result: deliverable.result([], end.detail) };
  }
}

/** Null: no disposition. */
async function sendResult(stored: StoredResult, parts: WorkerParts): Promise<DeliveryEnd> {
  const outcome = await parts.api.result(stored.credential, stored.attemptId, stored.body);
  if (outcome.kind === 'answer') return { disposition: outcome.value.disposition, detail: '' };
  if (outcome.kind === 'refused')
    return { disposition: 'rejected', detail: `${outcome.status} ${outcome.code ?? ''}: ${outcome.detail}` };
  parts.log.warn(
    { operation: 'result_not_delivered', attemptId: stored.attemptId, reason: outcome.reason },
    'no disposition yet',
  );
  return null;
}
