// Bytes to lines in flat memory: at most one line of at most the cap is held, and a longer one is passed over
// without being gathered.

/** UTF-8 bytes of a line; a longer one is a bad record. */
export const maxLineBytes = 1024 * 1024;
/** Bytes of a line that is too long which are kept to show it. */
const sampleBytes = 800;

export type Line = ({ kind: 'line'; text: string } | { kind: 'too-long'; sample: string }) & {
  /** Bytes from the start of the stream to the start of the next line. */
  end: number;
};

/** Pieces of one line that are held apart: a source may send byte by byte. */
const maxPieces = 256;

const newline = 0x0a;
const utf8Bom = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Lines without their ends (LF or CRLF) and without a byte order mark; invalid UTF-8 becomes U+FFFD. The last
 * line needs no end. Empty lines are given too.
 */
export async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const gatherer = new LineGatherer();
  for await (const chunk of bytes) {
    for (const line of gatherer.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)))
      yield line;
  }
  const last = gatherer.end();
  if (last !== null) yield last;
}

class LineGatherer {
  #pieces: Buffer[] = [];
  #size = 0;
  #sample = Buffer.alloc(0);
  #first = true;
  #end = 0;

  *push(chunk: Buffer): Generator<Line> {
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      this.#add(chunk.subarray(from, end));
      this.#end += 1;
      yield this.#take();
      from = end + 1;
    }
    // Copied: the source may use the memory of its chunk again.
    if (from < chunk.length) this.#add(Buffer.from(chunk.subarray(from)));
  }

  end(): Line | null {
    return this.#size === 0 ? null : this.#take();
  }

  #add(piece: Buffer): void {
    this.#size += piece.length;
    this.#end += piece.length;
    if (this.#size > maxLineBytes + 1) this.#keepSample(piece);
    else if (this.#pieces.push(piece) > maxPieces) this.#pieces = [Buffer.concat(this.#pieces)];
  }

  /** The line is too long for good: of what was gathered only its beginning stays. */
  #keepSample(piece: Buffer): void {
    if (this.#sample.length > 0) return;
    const start = Buffer.concat([...this.#pieces, piece].map((part) => part.subarray(0, sampleBytes)));
    this.#pieces = [];
    this.#sample = Buffer.from(start.subarray(0, sampleBytes));
  }

  #take(): Line {
    const gathered = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
    const line = this.#lineOf(gathered ?? Buffer.alloc(0));
    this.#pieces = [];
    this.#sample = Buffer.alloc(0);
    this.#size = 0;
    this.#first = false;
    return line;
  }

  #lineOf(gathered: Buffer): Line {
    const whole = this.#sample.length > 0 ? this.#sample : gathered;
    const start = this.#first && whole.subarray(0, 3).equals(utf8Bom) ? 3 : 0;
    const returns = whole.at(-1) === 0x0d && this.#sample.length === 0;
    const text = whole.toString('utf8', start, returns ? whole.length - 1 : whole.length);
    const tooLong = this.#size - (returns ? 1 : 0) > maxLineBytes;
    const end = this.#end;
    return tooLong
      ? { kind: 'too-long', sample: text.slice(0, sampleBytes), end }
      : { kind: 'line', text, end };
  }
}
