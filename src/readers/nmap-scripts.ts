// Scripts of one port or host: what each printed, and the few values that other records are made of.
import { createHash, X509Certificate } from 'node:crypto';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { storableText } from '#sonar/domain/records-storable.ts';
import { valueOf } from './hosts-xml.ts';

const maxScripts = 32;
/** Values of one script that are kept, each under the keys that lead to it. */
const maxValues = 256;
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
      this.#keys.push(attributes.key ?? '');
      this.#text = '';
    }
  }

  text(text: string): void {
    if (this.#keys.length > 0 && this.#text.length < maxPemLength) this.#text += text;
  }

  close(name: string): void {
    if (name === 'elem' && this.#values.size < maxValues)
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
    const der = pem === undefined ? null : derOf(pem);
    if (der === null) return [];
    const fields = {
      sha256: createHash('sha256').update(der).digest('hex'),
      subject_cn: of('subject/commonName'),
      issuer_cn: of('issuer/commonName'),
      not_before: utcOf(of('validity/notBefore')),
      not_after: utcOf(of('validity/notAfter')),
    };
    return [{ type: 'certificate', fields, sets: { hosts, names: namesOf(der) } }];
  }
}

/** nmap prints UTC without saying so. */
const utcOf = (time: string | null): string | null =>
  time !== null && /T\d\d:\d\d:\d\d$/.test(time) ? `${time}Z` : time;

/** The names a certificate is for; none where it does not parse. */
function namesOf(der: Buffer): string[] {
  try {
    const { subjectAltName = '' } = new X509Certificate(der);
    return [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,"]+)/g)].map(([, name = '']) => name);
  } catch {
    return [];
  }
}

function derOf(pem: string): Buffer | null {
  const [, base64 = ''] = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END/.exec(pem) ?? [];
  return base64.trim() === '' ? null : Buffer.from(base64, 'base64');
}
