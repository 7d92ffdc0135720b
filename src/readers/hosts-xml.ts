// The XML of nmap (`-oX`), of masscan, which borrowed it, and of sslscan. Broken XML is read as far as it goes: nmap
// writes control characters as references that XML forbids, and all leave half a document when they die.
import { SaxesParser, type SaxesTagPlain } from 'saxes';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import { safeSample, storableText } from '#sonar/domain/records-storable.ts';

/** Characters without a tag after which reading ends: a value this long is no nmap's, and it is held whole. */
const maxTokenLength = 8 * 1024 * 1024;

/**
 * Faults of the XML, besides one for so many characters, after which reading ends: each costs the parser as much as
 * hundreds of characters. Honest documents have a few where a banner had control characters.
 */
const maxFaults = 10_000;
const charactersAFault = 256;

/** What makes rows of the tags. */
export interface HostsSink {
  takeEvents: () => ReadEvent[];
  warn: (message: string) => void;
  bad: (reason: string, sample: string) => void;
  open: (name: string, attributes: Record<string, string>) => void;
  text: (text: string) => void;
  close: (name: string) => void;
}

/** Whose document it is: nothing outside its root element is read. */
export interface XmlDialect {
  root: string;
  tool: string;
}

const nmapDialect: XmlDialect = { root: 'nmaprun', tool: 'nmap' };

export async function* readHostsXml(
  bytes: AsyncIterable<Uint8Array>,
  hosts: HostsSink,
  dialect: XmlDialect = nmapDialect,
): AsyncGenerator<ReadEvent> {
  const document = new HostsDocument(hosts, dialect);
  const decoder = new TextDecoder();
  for await (const chunk of bytes) {
    document.write(decoder.decode(chunk, { stream: true }));
    yield* hosts.takeEvents();
    if (document.refused !== null) break;
  }
  document.end(decoder.decode());
  yield* hosts.takeEvents();
}

const maxValueLength = 4_096;
/** Control characters that nmap writes as references XML forbids; the parser leaves those as they are. */
const forbiddenReference = /&#(0*[0-9]|0*[12][0-9]|0*3[01]|x0*1?[0-9a-f]);/gi;

/** The value of an attribute or an element, storable and cut; null where it is empty. */
export const valueOf = (text: string | undefined): string | null =>
  text === undefined || text === ''
    ? null
    : storableText(text.replaceAll(forbiddenReference, '\uFFFD'), maxValueLength);

class HostsDocument {
  /** Why the rest is not read, or null. */
  refused: string | null = null;
  #characters = 0;
  readonly #parser = new SaxesParser({ position: true, xmlns: false });
  readonly #hosts: HostsSink;
  readonly #dialect: XmlDialect;
  #sawRoot = false;
  #sawText = false;
  #closed = false;
  #sinceTag = 0;
  #faults = 0;
  #firstFault = '';
  #ending = false;

  constructor(hosts: HostsSink, dialect: XmlDialect) {
    this.#hosts = hosts;
    this.#dialect = dialect;
    // Without a handler the parser throws; with one it reports and reads on.
    this.#parser.on('error', ({ message }) => this.#fault(message));
    this.#parser.on('opentag', (tag) => this.#open(tag));
    const text = (text: string): void => {
      if (this.#sawRoot) this.#hosts.text(text);
    };
    this.#parser.on('text', text);
    this.#parser.on('cdata', text);
    this.#parser.on('closetag', ({ name }) => this.#close(name));
  }

  /** Written in pieces: a huge token, or nothing but faults, is seen before the parser has done much with it. */
  write(text: string): void {
    if (text !== '') this.#sawText = true;
    const pieceLength = 4_096;
    for (let at = 0; at < text.length && this.refused === null; at += pieceLength) {
      const piece = text.slice(at, at + pieceLength);
      this.#sinceTag += piece.length;
      this.#characters += piece.length;
      this.#parser.write(piece);
      if (this.#faults > maxFaults + this.#characters / charactersAFault) this.#refuseFaults();
      else if (this.#sinceTag > maxTokenLength) this.refused = `${maxTokenLength} characters without a tag`;
    }
  }

  end(rest: string): void {
    this.write(rest);
    const complete = this.#closed;
    // What the parser says about an end that is cut is one warning of our own.
    this.#ending = true;
    if (this.refused === null) this.#parser.close();
    if (!this.#sawRoot && this.#sawText) {
      this.#hosts.bad(`the output is no ${this.#dialect.tool} XML`, '');
    }
    if (this.#faults > 0) {
      const more = this.#faults === 1 ? '' : ` and ${this.#faults - 1} more like it`;
      this.#hosts.warn(
        `the output is not well-formed XML, and was read all the same: ${this.#firstFault}${more}`,
      );
    }
    if (this.refused !== null) this.#hosts.warn(`reading ended early: ${this.refused}`);
    else if (!complete && (this.#sawRoot || !this.#sawText)) {
      this.#hosts.warn('the output was cut: it ends before the scan does');
    }
  }

  #refuseFaults(): void {
    this.refused = `the XML has more than ${this.#faults - 1} faults`;
    this.#hosts.bad(`${this.refused}: the rest is not read`, this.#firstFault);
  }

  #fault(message: string): void {
    if (this.#ending) return;
    this.#faults += 1;
    if (this.#faults === 1) this.#firstFault = safeSample(message);
  }

  #open({ name, attributes }: SaxesTagPlain): void {
    this.#sinceTag = 0;
    if (name === this.#dialect.root) this.#sawRoot = true;
    if (this.#sawRoot) this.#hosts.open(name, attributes);
  }

  #close(name: string): void {
    this.#sinceTag = 0;
    if (name === this.#dialect.root) this.#closed = true;
    if (this.#sawRoot) this.#hosts.close(name);
  }
}
