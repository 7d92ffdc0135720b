// Scripts of one port or host: what each printed, and the few values that other records are made of.
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { storableText } from '#sonar/domain/records-storable.ts';
import { valueOf } from './hosts-xml.ts';
import { pemCertificate } from './pem-certificate.ts';

const maxScripts = 32;
/** Values of one script that are kept, each under the keys that lead to it. */
const maxValues = 256;
/** Tables around a value that is kept; nobody asks for what lies deeper. */
const maxKeys = 8;
const maxKeyLength = 128;
/** A certificate in PEM is longer than what else is kept of a value. */
const maxPemLength = 65_536;

export class NmapScripts {
  /** Script → what it printed. */
  readonly outputs: Record<string, string> = {};
  #id = '';
  #keys: string[] = [];
  #text = '';
  readonly #values = new Map<string, string>();

  open(name: string, attributes: Record<string, string>): void {
    if (name === 'script') {
      this.#id = valueOf(attributes.id) ?? '';
      this.#keys = [];
      const output = valueOf(attributes.output?.trim());
      if (output !== null && Object.keys(this.outputs).length < maxScripts) this.outputs[this.#id] = output;
    } else if (name === 'table' || name === 'elem') {
      this.#keys.push((attributes.key ?? '').slice(0, maxKeyLength));
      this.#text = '';
    }
  }

  text(text: string): void {
    if (this.#keys.length > 0 && this.#text.length < maxPemLength) this.#text += text;
  }

  close(name: string): void {
    if (name === 'elem' && this.#keys.length <= maxKeys && this.#values.size < maxValues)
      this.#values.set([this.#id, ...this.#keys].join('/'), storableText(this.#text, maxPemLength));
    if (name === 'table' || name === 'elem') this.#keys.pop();
    this.#text = '';
  }

  /** The page's title, where `http-title` ran. */
  get title(): string | null {
    return valueOf(this.#values.get('http-title/title'));
  }

  /** The certificate that `ssl-cert` showed; its fingerprint is made of the PEM, since nmap prints no SHA-256. */
  certificate(hosts: string[]): RecordDraft[] {
    const of = (key: string): string | null => valueOf(this.#values.get(`ssl-cert/${key}`));
    const pem = this.#values.get('ssl-cert/pem');
    const shown = pem === undefined ? null : pemCertificate(pem);
    if (shown === null) return [];
    const fields = {
      sha256: shown.sha256,
      subject_cn: of('subject/commonName'),
      issuer_cn: of('issuer/commonName'),
      not_before: utcOf(of('validity/notBefore')),
      not_after: utcOf(of('validity/notAfter')),
    };
    return [{ type: 'certificate', fields, sets: { hosts, names: shown.names } }];
  }
}

/** nmap prints UTC without saying so. */
const utcOf = (time: string | null): string | null =>
  time !== null && /T\d\d:\d\d:\d\d$/.test(time) ? `${time}Z` : time;
