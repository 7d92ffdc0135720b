import { once } from 'node:events';

/** Where a command writes: a terminal, a pipe, or a test's list of texts. */
export interface Sink {
  write(text: string): void;
  /** Never to a terminal. Settles when more may be written. */
  writeBytes(bytes: Uint8Array): Promise<void>;
  readonly isTerminal: boolean;
  /** Asked anew for each picture: a window may be resized. */
  size(): { columns: number; rows: number };
}

/** A stream of this process; 80 by 24 when its terminal does not say. */
export function sinkOf(stream: NodeJS.WriteStream): Sink {
  return {
    write: (text) => void stream.write(text),
    async writeBytes(bytes) {
      if (!stream.write(bytes)) await once(stream, 'drain');
    },
    isTerminal: stream.isTTY,
    size: () => ({ columns: stream.columns || 80, rows: stream.rows || 24 }),
  };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Colours: only on a terminal, and not where NO_COLOR or a dumb terminal says otherwise. */
export function wantsColour(sink: Sink, environment: Environment): boolean {
  return sink.isTerminal && !environment.NO_COLOR && environment.TERM !== 'dumb';
}

/** Blocks for bars: unless the locale names an encoding without them. */
export function wantsUnicode(environment: Environment): boolean {
  const locale = environment.LC_ALL || environment.LC_CTYPE || environment.LANG || 'C.UTF-8';
  return /utf-?8/i.test(locale);
}

/** Without a terminal nothing is cut to a width. */
export function widthOf(sink: Sink): number {
  return sink.isTerminal ? sink.size().columns : Number.POSITIVE_INFINITY;
}

const up = (lines: number): string => (lines === 0 ? '' : `\u001b[${lines}A`);
const eraseLine = '\u001b[2K';
const eraseBelow = '\u001b[0J';

/** Lines at the end of a terminal that are drawn over; each must fit its width, all must fit its height. */
export class LiveLines {
  readonly #sink: Sink;
  #drawn = 0;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  draw(lines: readonly string[]): void {
    const text = lines.map((line) => `${eraseLine}${line}\n`).join('');
    this.#sink.write(`\r${up(this.#drawn)}${text}${eraseBelow}`);
    this.#drawn = lines.length;
  }
}
