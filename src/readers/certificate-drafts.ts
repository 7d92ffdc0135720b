// Certificates as tlsx writes them, alone and inside the lines of httpx.
import type { Row } from '#sonar/contracts/definition.ts';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { flagOf, objectOf, objectsOf, textOf, textsOf } from './field-values.ts';

export const sha256Of = (certificate: Row): string | null => {
  const sha256 = textOf(objectOf(certificate.fingerprint_hash).sha256)?.replaceAll(':', '').toLowerCase();
  return sha256 !== undefined && /^[0-9a-f]{64}$/.test(sha256) ? sha256 : null;
};

/** The certificate of a connection, and those of its chain; none where the tool gives no fingerprint. */
export function certificateDrafts(response: Row): RecordDraft[] {
  const host = textOf(response.host);
  const hosts = host === null ? [] : [host];
  return [
    ...certificateDraft(response, hosts),
    ...objectsOf(response.chain).flatMap((certificate) => certificateDraft(certificate, [])),
  ];
}

function certificateDraft(certificate: Row, hosts: string[]): RecordDraft[] {
  const sha256 = sha256Of(certificate);
  if (sha256 === null) return [];
  return [
    {
      type: 'certificate',
      fields: {
        sha256,
        subject: textOf(certificate.subject_dn),
        subject_cn: textOf(certificate.subject_cn),
        issuer: textOf(certificate.issuer_dn),
        issuer_cn: textOf(certificate.issuer_cn),
        serial: textOf(certificate.serial),
        not_before: textOf(certificate.not_before),
        not_after: textOf(certificate.not_after),
        self_signed: flagOf(certificate.self_signed),
        expired: flagOf(certificate.expired),
        mismatched: flagOf(certificate.mismatched),
        revoked: flagOf(certificate.revoked),
        untrusted: flagOf(certificate.untrusted),
        wildcard: flagOf(certificate.wildcard_certificate),
      },
      sets: {
        names: textsOf(certificate.subject_an),
        hosts,
        organizations: textsOf(certificate.subject_org),
      },
    },
  ];
}
