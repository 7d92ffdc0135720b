import { writeSync } from 'node:fs';
import pino, { type Logger } from 'pino';

export type { Logger };

/** JSON lines on stderr, each with a stable `operation`; never a secret, never a payload. */
export function createLogger(role: string, level: string = process.env.SONAR_LOG_LEVEL ?? 'info'): Logger {
  const base = { role, pid: process.pid };
  return pino(
    { base, level, timestamp: pino.stdTimeFunctions.isoTime },
    createLogDestination((bytes) => writeSync(2, bytes), base),
  );
}

const waitMs = 10;
/** How often a reader that takes nothing now is waited for before the line is dropped. */
const waits = 20;
const newline = Buffer.from('\n');

/**
 * Writes each line at once, or drops it: a full disk or a reader that went must cost the log and nothing else. pino's
 * own destination emits an `error` that ends the process, and at its exit tries for ever. The first line that can be
 * written again comes after one that says how many are missing.
 */
export function createLogDestination(
  write: (bytes: Buffer) => number,
  base: Record<string, unknown>,
): { write(line: string): void } {
  let dropped = 0;
  let cut = false;

  /** False when not all of it was written. */
  function put(bytes: Buffer): boolean {
    let at = 0;
    for (let waited = 0; at < bytes.length; ) {
      try {
        const written = write(bytes.subarray(at));
        at += written;
        // A write that takes nothing and says nothing must not be tried for ever either.
        if (written === 0) waited += 1;
      } catch (error) {
        // Who has waited once in vain does not wait again until something was written: a stuck log slows nobody down.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || dropped > 0) waited = waits;
        else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, waitMs);
        waited += 1;
      }
      if (waited < waits) continue;
      cut ||= at > 0;
      return false;
    }
    return true;
  }

  return {
    write(line) {
      if (dropped > 0) {
        const notice = noticeOf(dropped, base);
        // What was cut ends here, so that the next line is a line.
        if (!put(cut ? Buffer.concat([newline, notice]) : notice)) {
          dropped += 1;
          return;
        }
        dropped = 0;
        cut = false;
      }
      if (!put(Buffer.from(line))) dropped += 1;
    },
  };
}

const noticeOf = (lines: number, base: Record<string, unknown>): Buffer => {
  const time = new Date().toISOString();
  const operation = 'log_lines_dropped';
  return Buffer.from(
    `${JSON.stringify({ level: pino.levels.values.warn, time, ...base, operation, lines })}\n`,
  );
};
