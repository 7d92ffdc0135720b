// Takes the bytes of a stdout or stderr: keeps up to the cap, hashes what it keeps, drops the rest, and never makes
// the command wait. Writes are synchronous: that is the back-pressure, and they go to the page cache.
import { createHash } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import type { StreamEnd, StreamPlan } from './spawn-protocol.ts';

export interface StreamSink {
  write(chunk: Buffer): void;
  /** No more will come, though there was more: what is kept is not whole. */
  cut(reason: string): void;
  /** Closes the file; the same answer however often it is asked. */
  finish(): StreamEnd;
}

/** @throws the system's error when the file cannot be made. */
export function createStreamSink(plan: StreamPlan): StreamSink {
  // `wx`: nothing may stand there before the command has run.
  const file = plan.path === null ? null : openSync(plan.path, 'wx', 0o600);
  const hash = createHash('sha256');
  const heads: Buffer[] = [];
  let headSize = 0;
  let size = 0;
  let truncated = false;
  let fault: string | null = null;
  let end: StreamEnd | null = null;

  /** A write that fails half way leaves bytes behind that are in no size and no hash. */
  function dropHalfWritten(): void {
    try {
      if (file !== null) ftruncateSync(file, size);
    } catch {
      // Then the file is not what is claimed of it, and its upload says so.
    }
  }

  return {
    write(chunk) {
      if (fault !== null || end !== null) return;
      const kept = chunk.subarray(0, plan.capBytes - size);
      truncated ||= kept.length < chunk.length;
      if (kept.length === 0) return;
      try {
        for (let at = 0; file !== null && at < kept.length; ) at += writeSync(file, kept, at);
      } catch (error) {
        // A full disk: what was written before is whole, and the command goes on.
        fault = (error as { code?: string }).code ?? String(error);
        truncated = true;
        dropHalfWritten();
        return;
      }
      size += kept.length;
      hash.update(kept);
      if (headSize < plan.headBytes) {
        const head = Buffer.from(kept.subarray(0, plan.headBytes - headSize));
        heads.push(head);
        headSize += head.length;
      }
    },
    cut(reason) {
      fault ??= reason;
      truncated = true;
    },
    finish() {
      if (end !== null) return end;
      try {
        if (file !== null) closeSync(file);
      } catch (error) {
        fault ??= (error as { code?: string }).code ?? String(error);
      }
      end = {
        head: Buffer.concat(heads).toString('base64'),
        size,
        sha256: hash.digest('hex'),
        truncated,
        fault,
      };
      return end;
    },
  };
}
