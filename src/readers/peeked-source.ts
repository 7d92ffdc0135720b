// A source whose beginning is looked at before it is read.
export interface Peeked {
  /** The source's first bytes, all of them where `complete`. */
  start: Buffer;
  complete: boolean;
  /** The whole source; `start` is its first chunk. */
  all: () => AsyncGenerator<Buffer>;
  /** Lets the source go, read to its end or not. */
  close: () => Promise<void>;
}

/** Reads at least `count` bytes where there are as many. */
export async function peek(bytes: AsyncIterable<Uint8Array>, count: number): Promise<Peeked> {
  const iterator = bytes[Symbol.asyncIterator]();
  const chunks: Buffer[] = [];
  let size = 0;
  let complete = false;
  while (size < count && !complete) {
    const next = await iterator.next();
    complete = next.done === true;
    if (next.done === true) continue;
    // Copied: the source may use the memory of its chunk again.
    chunks.push(Buffer.from(next.value));
    size += next.value.byteLength;
  }
  const start = Buffer.concat(chunks);
  async function* all(): AsyncGenerator<Buffer> {
    yield start;
    if (complete) return;
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
      yield Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
  }
  const close = async (): Promise<void> => void (await iterator.return?.());
  return { start, complete, all, close };
}
