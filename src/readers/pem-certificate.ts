// Certificates that tools show as PEM: the fingerprint is the record's key, and few tools print it.
import { createHash, X509Certificate } from 'node:crypto';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { storableText } from '#sonar/domain/records-storable.ts';

export interface PemCertificate {
  sha256: string;
  subject: string | null;
  subjectCn: string | null;
  issuer: string | null;
  issuerCn: string | null;
  serial: string | null;
  /** ISO 8601. */
  notBefore: string | null;
  notAfter: string | null;
  /** The names that it is for. */
  names: string[];
}

/** Values from targets: no certificate is so long. */
const maxValueLength = 4_096;

/** Null where the text holds no PEM. What does not parse as a certificate has a fingerprint all the same. */
export function pemCertificate(pem: string): PemCertificate | null {
  const [, base64 = ''] = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END/.exec(pem) ?? [];
  if (base64.trim() === '') return null;
  const der = Buffer.from(base64, 'base64');
  const sha256 = createHash('sha256').update(der).digest('hex');
  const parsed = parse(der);
  return {
    sha256,
    subject: lineOf(parsed?.subject),
    subjectCn: commonNameOf(parsed?.subject),
    issuer: lineOf(parsed?.issuer),
    issuerCn: commonNameOf(parsed?.issuer),
    serial: parsed?.serialNumber.toLowerCase() ?? null,
    notBefore: timeOf(parsed?.validFromDate),
    notAfter: timeOf(parsed?.validToDate),
    names: namesOf(parsed?.subjectAltName),
  };
}

/** `more` are fields that the tool itself says of it. */
export const pemCertificateDraft = (
  shown: PemCertificate,
  hosts: string[],
  more: RecordDraft['fields'] = {},
): RecordDraft => ({
  type: 'certificate',
  fields: {
    sha256: shown.sha256,
    subject: shown.subject,
    subject_cn: shown.subjectCn,
    issuer: shown.issuer,
    issuer_cn: shown.issuerCn,
    serial: shown.serial,
    not_before: shown.notBefore,
    not_after: shown.notAfter,
    ...more,
  },
  sets: { names: shown.names, hosts },
});

function parse(der: Buffer): X509Certificate | null {
  try {
    return new X509Certificate(der);
  } catch {
    return null;
  }
}

/** Node writes one part of the name a line. */
const lineOf = (name: string | undefined): string | null =>
  name === undefined || name === '' ? null : storableText(name.replaceAll('\n', ', '), maxValueLength);

const commonNameOf = (name: string | undefined): string | null => {
  const [, text] = /^CN=(.+)$/m.exec(name ?? '') ?? [];
  return text === undefined ? null : storableText(text, maxValueLength);
};

const timeOf = (time: Date | undefined): string | null =>
  time === undefined || Number.isNaN(time.getTime()) ? null : time.toISOString().replace('.000Z', 'Z');

const namesOf = (alternatives: string | undefined): string[] =>
  [...(alternatives ?? '').matchAll(/(?:DNS|IP Address):([^,"]+)/g)].map(([, name = '']) => name);
