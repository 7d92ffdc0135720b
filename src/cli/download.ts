// A file of a task, fetched from where the api says: verified, and shown or written without harm.
import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { OutputPlace } from '#sonar/contracts/task-api.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import { safeLines } from './safe-lines.ts';
import type { Session } from './session.ts';

/** A terminal gets no more; a file or a pipe gets all. */
const shownBytes = 1024 * 1024;
/** Nothing came for so long. */
const silenceMs = 60_000;

async function* bytesOf(place: OutputPlace): AsyncGenerator<Uint8Array, void, undefined> {
  const hash = createHash('sha256');
  let size = 0;
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMs);
  try {
    const answer = await fetch(place.url, { redirect: 'manual', signal: silence.signal });
    if (!answer.ok || answer.body === null) throw new Error(`the object store answered ${answer.status}`);
    for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
      timer.refresh();
      size += chunk.length;
      if (size > place.size) break;
      hash.update(chunk);
      yield chunk;
    }
  } catch (error) {
    throw new SonarError(
      'unreachable',
      `${place.path} could not be fetched: ${messageOf(error)}; this machine must reach the object store at ${URL.parse(place.url)?.host}`,
      { cause: error },
    );
  } finally {
    clearTimeout(timer);
  }
  if (size !== place.size || hash.digest('hex') !== place.sha256)
    throw new SonarError(
      'invalid',
      `${place.path} is not the ${place.size} bytes with SHA-256 ${place.sha256} that were accepted`,
    );
}

/** Whole or not at all: the file gets its name when its hash is right. */
export async function saveFile(session: Session, place: OutputPlace, file: string): Promise<void> {
  const target = resolve(session.surroundings.workingDirectory, file);
  const unfinished = `${target}.${process.pid}.part`;
  try {
    const handle = await open(unfinished, 'wx', 0o600);
    try {
      for await (const chunk of bytesOf(place)) await handle.writeFile(chunk);
    } finally {
      await handle.close();
    }
    await rename(unfinished, target);
  } catch (error) {
    await rm(unfinished, { force: true });
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (!/^E[A-Z]+$/.test(code)) throw error;
    throw new SonarError('usage', `${file} cannot be written (${code}); name another with -o`, {
      cause: error,
    });
  }
}

/** Safe lines on a terminal, as many as it should get; the bytes themselves into a pipe. */
export async function printFile(session: Session, place: OutputPlace): Promise<void> {
  const { stdout } = session.surroundings;
  if (!stdout.isTerminal) {
    for await (const chunk of bytesOf(place)) await stdout.writeBytes(chunk);
    return;
  }
  const kept: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bytesOf(place)) {
    kept.push(chunk);
    size += chunk.length;
    if (size >= shownBytes) break;
  }
  for (const line of safeLines(Buffer.concat(kept).subarray(0, shownBytes))) session.say(line);
  if (place.size > shownBytes)
    session.hint(`the first ${shownBytes} of ${place.size} bytes; all of it: -o FILE, or into a pipe`);
}
