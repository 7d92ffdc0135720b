// The tests of sslscan's XML, one for each host and port: tags in, rows and records out. A test counts when it is
// complete; one that found no TLS is no row.
import type { Row } from '#sonar/contracts/definition.ts';
import type { ReadEvent, RecordDraft } from '#sonar/contracts/records.ts';
import { safeSample } from '#sonar/domain/records-storable.ts';
import { portOf, textOf, textsOf } from './field-values.ts';
import { HostsEvents } from './hosts-events.ts';
import { type HostsSink, valueOf } from './hosts-xml.ts';
import { type PemCertificate, pemCertificate, pemCertificateDraft } from './pem-certificate.ts';
import { domainOf, hostOf, ipOf, portNames } from './places.ts';
import { addressDraft, domainDraft, serviceDraft } from './record-drafts.ts';
import { type SslscanFlaw, type SslscanTest, sslscanFlaws } from './sslscan-flaws.ts';

type Attributes = Record<string, string>;

/** More than there are names of ciphers. */
const maxCiphers = 1_024;
const maxProtocols = 16;
/** A certificate in PEM is longer than what is kept of other texts. */
const maxTextLength = 65_536;

export class SslscanTests implements HostsSink {
  readonly #events = new HostsEvents();
  #test: SslscanTest | null = null;
  #element = '';
  #text = '';

  takeEvents(): ReadEvent[] {
    return this.#events.take();
  }

  warn(message: string): void {
    this.#events.warn(message);
  }

  bad(reason: string, sample: string): void {
    this.#events.bad(reason, sample);
  }

  open(name: string, attributes: Attributes): void {
    this.#element = name;
    this.#text = '';
    if (name === 'ssltest') this.#test = newTest(attributes);
    else if (this.#test !== null) openInTest(this.#test, name, attributes);
  }

  text(text: string): void {
    if (this.#text.length < maxTextLength) this.#text += text;
  }

  close(name: string): void {
    const test = this.#test;
    // sslscan says what went wrong of all targets in this one element, and exits with 0.
    if (name === 'error') this.warn(`sslscan: ${safeSample(this.#text.trim())}`);
    else if (name === 'ssltest' && test !== null) {
      this.#finish(test);
      this.#test = null;
    } else if (test !== null && name === this.#element && certificateElements.has(name))
      test.certificate[name] ??= this.#text;
    this.#element = '';
  }

  #finish(test: SslscanTest): void {
    const { host, port } = test;
    if (host === null || port === null) {
      this.bad('a test without a host and a port', `${host ?? ''}:${port ?? ''}`);
      return;
    }
    if (test.protocols.length === 0) {
      this.warn(`${host}:${port} speaks no TLS`);
      return;
    }
    const pem = test.certificate['certificate-blob'];
    const certificate = pem === undefined ? null : pemCertificate(pem);
    const row = rowOf(test, host, port, certificate);
    this.#events.row(row, recordsOf(test, row, certificate));
  }
}

/** Of the first certificate, which is the server's own. */
const certificateElements = new Set([
  'certificate-blob',
  'subject',
  'issuer',
  'self-signed',
  'expired',
  'not-valid-before',
  'not-valid-after',
]);

const newTest = ({ host, sniname, port }: Attributes): SslscanTest => ({
  host: hostOf(valueOf(host)),
  sni: domainOf(valueOf(sniname)),
  port: portOf(port),
  protocols: [],
  ciphers: [],
  insecureRenegotiation: false,
  compression: false,
  heartbleed: false,
  certificate: {},
});

function openInTest(test: SslscanTest, name: string, attributes: Attributes): void {
  if (name === 'protocol' && attributes.enabled === '1' && test.protocols.length < maxProtocols) {
    const { type = '', version = '' } = attributes;
    test.protocols.push(`${type === 'ssl' ? 'SSLv' : 'TLSv'}${version.slice(0, 8)}`);
  } else if (name === 'cipher' && test.ciphers.length < maxCiphers) test.ciphers.push(attributes);
  else if (name === 'renegotiation')
    test.insecureRenegotiation = attributes.supported === '1' && attributes.secure === '0';
  else if (name === 'compression') test.compression = attributes.supported === '1';
  else if (name === 'heartbleed' && attributes.vulnerable === '1') test.heartbleed = true;
}

function rowOf(test: SslscanTest, host: string, port: number, shown: PemCertificate | null): Row {
  const ip = ipOf(host);
  const name = ip === null ? host : (test.sni ?? host);
  const of = (element: string): string | null => valueOf(test.certificate[element]?.trim());
  return {
    host: name,
    ip,
    port,
    ...portNames(name, ip, port),
    protocol: 'tcp',
    tls_versions: test.protocols,
    ciphers: cipherNames(test),
    preferred: valueOf(test.ciphers.find(({ status }) => status === 'preferred')?.cipher),
    sha256: shown?.sha256 ?? null,
    subject: shown?.subjectCn ?? of('subject'),
    issuer: shown?.issuerCn ?? of('issuer'),
    names: shown?.names ?? [],
    not_before: shown?.notBefore ?? of('not-valid-before'),
    not_after: shown?.notAfter ?? of('not-valid-after'),
    expired: of('expired') === 'true',
    self_signed: of('self-signed') === 'true',
    flaws: sslscanFlaws(test).map(({ rule }) => rule),
  };
}

const cipherNames = ({ ciphers }: SslscanTest): string[] => [
  ...new Set(ciphers.flatMap(({ cipher }) => valueOf(cipher) ?? [])),
];

function recordsOf(test: SslscanTest, row: Row, shown: PemCertificate | null): RecordDraft[] {
  const host = textOf(row.host);
  const ip = textOf(row.ip);
  const service = serviceDraft(
    { ip, host, port: test.port },
    {
      tls: true,
      certificate: shown?.sha256 ?? null,
    },
  );
  return [
    ...domainDraft(host),
    ...addressDraft(ip, host),
    ...service.map((draft) => ({
      ...draft,
      sets: { ...draft.sets, tls_versions: test.protocols, ciphers: cipherNames(test) },
    })),
    ...(shown === null ? [] : [certificateDraft(test, row, shown)]),
    ...sslscanFlaws(test).map((flaw) => findingDraft(flaw, row)),
  ];
}

const certificateDraft = (test: SslscanTest, row: Row, shown: PemCertificate): RecordDraft =>
  pemCertificateDraft(shown, textsOf(row.host), {
    ...(test.certificate['self-signed'] === undefined ? {} : { self_signed: row.self_signed ?? null }),
    ...(test.certificate.expired === undefined ? {} : { expired: row.expired ?? null }),
  });

function findingDraft({ rule, name, severity, evidence }: SslscanFlaw, row: Row): RecordDraft {
  const { host = null, ip = null, port = null, ip_port: byAddress = null, host_port: byName = null } = row;
  return {
    type: 'finding',
    fields: {
      source: 'sslscan',
      rule,
      target: byAddress ?? byName,
      name,
      severity,
      type: 'tls',
      host,
      ip,
      port,
    },
    sets: { extracted: evidence },
  };
}
