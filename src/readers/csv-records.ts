// Lines to the records of a CSV file (RFC 4180, read leniently). A quote that is never closed costs its line, not
// the rest of the file: what it seemed to hold is read again without it.
import { type Line, maxLineBytes } from './line-stream.ts';
import { tooLong } from './lines.ts';

export type CsvRecord =
  | { kind: 'fields'; fields: string[]; text: string }
  | { kind: 'bad'; reason: string; text: string };

/** Lines of one record: a quote that is still open after so many was never one. */
const maxRecordLines = 10_000;

/**
 * A line may be read again so often on average. A file of nothing but open quotes would else cost the square of its
 * lines, and whoever reads it would do nothing else meanwhile.
 */
const rereads = 8;

const delimiters = [',', ';', '\t', '|'];

/** The delimiter that the header uses most; a comma where it uses none. */
export function delimiterOf(header: string): string {
  const bare = header.replaceAll(/"[^"]*"/g, '');
  const counts = delimiters.map((delimiter) => bare.split(delimiter).length);
  return delimiters[counts.indexOf(Math.max(...counts))] ?? ',';
}

const neverClosed = (text: string): CsvRecord => ({ kind: 'bad', reason: 'a quote is never closed', text });

export class CsvRecords {
  readonly #delimiter: string;
  #lines: string[] = [];
  #size = 0;
  #fields: string[] = [];
  #field = '';
  #quoted = false;
  /** Characters that may still be read again. */
  #credit = 0;

  constructor(delimiter: string) {
    this.#delimiter = delimiter;
  }

  /** Records that end with this line; blank lines between records are none. */
  push(line: Line): CsvRecord[] {
    if (line.kind === 'too-long') {
      const earlier = this.end();
      return [...earlier, { kind: 'bad', reason: tooLong, text: line.sample }];
    }
    if (!this.#quoted && line.text.trim() === '') return [];
    this.#credit += rereads * (line.text.length + 1);
    const record = this.#add(line.text);
    if (record !== null) return [record];
    return this.#size > maxLineBytes || this.#lines.length > maxRecordLines ? this.#giveUp() : [];
  }

  /** What is left: a quote that is still open was never one. */
  end(): CsvRecord[] {
    const records: CsvRecord[] = [];
    while (this.#lines.length > 0) records.push(...this.#giveUp());
    return records;
  }

  /**
   * The first line of the open record is bad, the others are read again: each by itself where too much was read again
   * already.
   */
  #giveUp(): CsvRecord[] {
    const [first = '', ...rest] = this.#lines;
    this.#credit -= this.#size;
    const alone = this.#credit < 0;
    this.#reset();
    const records: CsvRecord[] = [neverClosed(first)];
    for (const text of rest) {
      const record = this.#add(text);
      if (record !== null) records.push(record);
      else if (alone) {
        this.#reset();
        records.push(neverClosed(text));
      }
    }
    return records;
  }

  #add(text: string): CsvRecord | null {
    this.#lines.push(text);
    this.#size += text.length + 1;
    if (this.#quoted) this.#field += '\n';
    this.#split(text);
    if (this.#quoted) return null;
    const record: CsvRecord = {
      kind: 'fields',
      fields: [...this.#fields, this.#field],
      text: this.#lines.join('\n'),
    };
    this.#reset();
    return record;
  }

  #reset(): void {
    this.#lines = [];
    this.#size = 0;
    this.#fields = [];
    this.#field = '';
    this.#quoted = false;
  }

  /** A quote counts only where a field begins; what follows a closing quote stays text. */
  #split(text: string): void {
    let at = 0;
    while (at <= text.length) {
      if (this.#quoted) {
        const close = text.indexOf('"', at);
        if (close === -1) {
          this.#field += text.slice(at);
          return;
        }
        const doubled = text[close + 1] === '"';
        this.#field += text.slice(at, doubled ? close + 1 : close);
        this.#quoted = doubled;
        at = close + (doubled ? 2 : 1);
        continue;
      }
      if (this.#field === '' && text[at] === '"' && (at === 0 || text[at - 1] === this.#delimiter)) {
        this.#quoted = true;
        at += 1;
        continue;
      }
      const end = text.indexOf(this.#delimiter, at);
      this.#field += text.slice(at, end === -1 ? text.length : end);
      if (end === -1) return;
      this.#fields.push(this.#field);
      this.#field = '';
      at = end + 1;
    }
  }
}
