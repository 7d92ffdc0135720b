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
  /** Makes the body; called again without files when the api refuses the uploads for good. */
  result(files: readonly OutputFile[], refusal: string | null): Result;
  files: readonly OutputFile[];
}

/** `null`: the signal aborted first; what was stored stays stored. */
export type DeliveryEnd = { disposition: Disposition; detail: string } | null;

/** Never gives up by itself: whoever waits for it sets the bound. */
export async function deliverResult(
  deliverable: Deliverable,
  parts: WorkerParts,
  signal: AbortSignal,
): Promise<DeliveryEnd> {
  const { config, gate, log } = parts;
  const uploader = createUploader(deliverable.files);
  let stored: StoredResult | null = null;
  for (let tried = 0; !signal.aborted; tried += 1) {
    if (tried > 0)
      await pause(
        jittered(backoffMs(tried - 1, config.retryFirstMs, config.retryMaxMs), Math.random()),
        signal,
      );
    if (signal.aborted) break;
    if (stored === null) {
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
      const candidate = {
        v: 1 as const,
        attemptId: ready.result.attemptId,
        credential: deliverable.credential,
        body: JSON.stringify(ready.result),
      };
      try {
        await storeResult(parts.directories.results, candidate);
      } catch (error) {
        log.error(
          { operation: 'result_not_stored', attemptId: candidate.attemptId, reason: messageOf(error) },
          'disk refuses the result',
        );
        continue;
      }
      stored = candidate;
    }
    const end = await sendResult(stored, parts);
    if (end !== null) {
      await forgetResult(parts.directories.results, stored.attemptId);
      return end;
    }
    gate.shut();
  }
  return null;
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
  if (end.kind === 'done') return { kind: 'ready', result };
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
