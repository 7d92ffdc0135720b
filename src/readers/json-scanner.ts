// Cuts a stream of JSON into the texts of its objects, in flat memory: of an array (also nested, cut short, with
// stray commas), of objects one after another, or of one array inside an object. Only brackets and strings are
// looked at here; each text is parsed alone, so that a broken object costs itself and no neighbour.
import { maxLineBytes } from './line-stream.ts';

export type JsonPiece =
  | { kind: 'object'; text: string }
  /** Something that is no object, or an object that never ends. */
  | { kind: 'broken'; text: string }
  | { kind: 'too-long'; sample: string };

/** Bytes of an object that is too long which are kept to show it. */
const sampleBytes = 800;

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const colon = 0x3a;
const newline = 0x0a;
const isBlank = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0d;

type State = 'between' | 'object' | 'scalar' | 'lost' | 'wrapper';

export interface ScannerOptions {
  /** The objects are in the array under this key of an object. */
  wrapper: string | null;
  /** The source writes each object on one line: a line that starts with `{` ends what came before. */
  oneLine: boolean;
}

export class JsonScanner {
  readonly #wrapper: string | null;
  readonly #oneLine: boolean;
  #state: State = 'between';
  /** Arrays that are open around the objects. */
  #arrays = 0;
  #inWrapper = false;
  /** Brackets that are open in the object around the array. */
  #wrapperDepth = 0;
  /** Brackets that are open in the object. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** Blanks before what comes first on the line; -1 once something stood there. */
  #column = 0;
  /** The column at which the object starts its line, or -1. */
  #indentation = -1;
  #pieces: Buffer[] = [];
  #size = 0;
  #key = '';
  #keyBytes: number[] = [];
  #out: JsonPiece[] = [];

  constructor({ wrapper, oneLine }: ScannerOptions) {
    this.#wrapper = wrapper;
    this.#oneLine = oneLine;
  }

  push(chunk: Buffer): JsonPiece[] {
    let at = 0;
    while (at < chunk.length) {
      if (this.#state === 'object') at = this.#object(chunk, at);
      else if (this.#state === 'between') at = this.#between(chunk, at);
      else if (this.#state === 'scalar') at = this.#scalar(chunk, at);
      else if (this.#state === 'lost') at = this.#lost(chunk, at);
      else at = this.#wrapperObject(chunk, at);
    }
    return this.#take();
  }

  /** What is left, and whether the stream ends before its brackets do. */
  end(): { pieces: JsonPiece[]; cut: boolean } {
    const cut = this.#state === 'object' || this.#arrays > 0 || this.#inWrapper;
    if (this.#state === 'object' || this.#state === 'scalar') this.#emit('broken');
    return { pieces: this.#take(), cut };
  }

  #take(): JsonPiece[] {
    const pieces = this.#out;
    this.#out = [];
    return pieces;
  }

  #between(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      if (byte === newline) this.#column = 0;
      else if (isBlank(byte)) this.#column += this.#column < 0 ? 0 : 1;
      else if (byte === openBracket) {
        this.#arrays += 1;
        this.#column = -1;
      } else if (byte === closeBracket && this.#arrays > 0) {
        this.#arrays -= 1;
        this.#column = -1;
        if (this.#arrays === 0 && this.#inWrapper) {
          this.#state = 'wrapper';
          // What the last element left of it, where a chunk ended within one of its strings.
          this.#inString = false;
          this.#escaped = false;
          return at + 1;
        }
      } else if (byte === openBrace && this.#wrapper !== null && this.#arrays === 0) {
        this.#startWrapper();
        return at + 1;
      } else if (byte !== comma) {
        this.#state = byte === openBrace ? 'object' : 'scalar';
        this.#start();
        return at;
      }
    }
    return chunk.length;
  }

  #start(): void {
    this.#depth = 0;
    this.#inString = false;
    this.#escaped = false;
    this.#indentation = this.#column;
    this.#column = -1;
  }

  #object(chunk: Buffer, from: number): number {
    let inString = this.#inString;
    let depth = this.#depth;
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      if (inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === backslash) this.#escaped = true;
        else if (byte === quote) inString = false;
        // JSON has no raw line ends in strings: this one was never closed.
        else if (byte === newline) return this.#break(chunk, from, at, 'lost');
        continue;
      }
      if (byte === newline) {
        this.#column = 0;
        continue;
      }
      if (isBlank(byte) || byte === comma) {
        if (this.#column >= 0 && byte !== comma) this.#column += 1;
        continue;
      }
      const column = this.#column;
      this.#column = -1;
      if (byte === quote) inString = true;
      else if (byte === openBrace || byte === openBracket) {
        if (byte === openBrace && depth > 0 && this.#startsAnother(column)) {
          this.#column = column;
          return this.#break(chunk, from, at, 'between');
        }
        depth += 1;
      } else if (byte === closeBrace || byte === closeBracket) {
        depth -= 1;
        if (depth <= 0) {
          this.#gather(chunk, from, at + 1);
          this.#emit('object');
          this.#state = 'between';
          return at + 1;
        }
      }
    }
    this.#inString = inString;
    this.#depth = depth;
    this.#gather(chunk, from, chunk.length);
    return chunk.length;
  }

  /** A `{` at this column belongs to the next object, although the one before was not closed. */
  #startsAnother(column: number): boolean {
    if (column < 0 || this.#indentation < 0 || column > this.#indentation) return false;
    return this.#oneLine || this.#indentation > 0;
  }

  #break(chunk: Buffer, from: number, at: number, next: State): number {
    this.#gather(chunk, from, at);
    this.#emit('broken');
    this.#state = next;
    return at;
  }

  /** After a string that was never closed: on at the next line that an object starts. */
  #lost(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      if (byte === newline) this.#column = 0;
      else if (this.#column >= 0 && isBlank(byte)) this.#column += 1;
      else if (this.#column >= 0 && byte === closeBracket && this.#arrays > 0) {
        this.#state = 'between';
        return at;
      } else if (this.#column >= 0 && byte === openBrace && this.#column <= Math.max(this.#indentation, 0)) {
        this.#state = 'between';
        return at;
      } else if (byte !== comma) this.#column = -1;
    }
    return chunk.length;
  }

  /** A value that is no object: a string to its quote, anything else to a comma, a bracket or the line's end. */
  #scalar(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      const first = this.#size === 0 && at === from;
      if (first) this.#inString = byte === quote;
      const ends =
        byte === newline ||
        (!this.#inString &&
          !first &&
          this.#arrays > 0 &&
          (byte === comma || byte === closeBracket || byte === openBrace));
      if (ends) return this.#break(chunk, from, at, 'between');
      if (!this.#inString || first) continue;
      if (this.#escaped) this.#escaped = false;
      else if (byte === backslash) this.#escaped = true;
      else if (byte === quote) this.#inString = false;
    }
    this.#gather(chunk, from, chunk.length);
    return chunk.length;
  }

  #startWrapper(): void {
    this.#state = 'wrapper';
    this.#inWrapper = true;
    this.#wrapperDepth = 1;
    this.#inString = false;
    this.#escaped = false;
    this.#key = '';
    this.#column = -1;
  }

  /** Passes over all of the object but the array under the wrapper's key. */
  #wrapperObject(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === backslash) this.#escaped = true;
        else if (byte === quote) this.#inString = false;
        else if (this.#wrapperDepth === 1 && this.#keyBytes.length < 64) this.#keyBytes.push(byte);
      } else if (byte === quote) {
        this.#inString = true;
        this.#keyBytes = [];
      } else if (byte === colon && this.#wrapperDepth === 1)
        this.#key = Buffer.from(this.#keyBytes).toString();
      else if (byte === openBracket && this.#wrapperDepth === 1 && this.#key === this.#wrapper) {
        this.#arrays = 1;
        this.#key = '';
        this.#state = 'between';
        return at + 1;
      } else if (byte === openBrace || byte === openBracket) this.#wrapperDepth += 1;
      else if (byte === closeBrace || byte === closeBracket) {
        this.#wrapperDepth -= 1;
        if (this.#wrapperDepth === 0) {
          this.#inWrapper = false;
          this.#state = 'between';
          return at + 1;
        }
      }
    }
    return chunk.length;
  }

  #gather(chunk: Buffer, from: number, to: number): void {
    const kept = this.#size <= maxLineBytes;
    this.#size += to - from;
    // Copied where the object goes on: the source may use the memory of its chunk again.
    if (this.#size <= maxLineBytes) this.#pieces.push(Buffer.from(chunk.subarray(from, to)));
    else if (kept) {
      this.#pieces.push(Buffer.from(chunk.subarray(from, Math.min(to, from + sampleBytes))));
      this.#pieces = [Buffer.concat(this.#pieces).subarray(0, sampleBytes)];
    }
    if (this.#pieces.length > 256) this.#pieces = [Buffer.concat(this.#pieces)];
  }

  #emit(kind: 'object' | 'broken'): void {
    const text = Buffer.concat(this.#pieces).toString('utf8');
    if (this.#size > maxLineBytes) this.#out.push({ kind: 'too-long', sample: text });
    else this.#out.push({ kind, text });
    this.#pieces = [];
    this.#size = 0;
  }
}
