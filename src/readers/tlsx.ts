// tlsx: TLS services and their certificates.
import type { Row } from '#sonar/contracts/definition.ts';
import { certificateDrafts, sha256Of } from './certificate-drafts.ts';
import { flagOf, portOf, textOf, textsOf, withRest } from './field-values.ts';
import { hostAndPort, hostOf, ipOf, portNames } from './places.ts';
import { addressDraft, domainDraft, serviceDraft } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'tlsx',
  rowsOf: (value) => rowsOf(value) ?? 'neither `host` nor `ip` is a host',
  // `a.test:443 [tls13] …`
  plain: (line) => {
    const place = hostAndPort(line.split(/\s/, 1)[0] ?? '');
    return place === null ? null : rowsOf({ ...place });
  },
};
export const tlsxReader = toolReader(tool);

function rowsOf(value: Row): ToolRow[] | null {
  const named = hostOf(textOf(value.host));
  const ip = ipOf(textOf(value.ip)) ?? ipOf(named);
  const host = named ?? ip;
  if (host === null) return null;
  const port = portOf(value.port);
  const failed = flagOf(value.probe_status) === false;
  const tls = { tls_version: textOf(value.tls_version), cipher: textOf(value.cipher) };
  const row = withRest(
    {
      host,
      ip,
      port,
      ...portNames(host, ip, port),
      protocol: 'tcp',
      ...tls,
      sha256: sha256Of(value),
      subject: textOf(value.subject_cn),
      issuer: textOf(value.issuer_cn),
      names: textsOf(value.subject_an),
      not_before: textOf(value.not_before),
      not_after: textOf(value.not_after),
      expired: flagOf(value.expired) ?? false,
      self_signed: flagOf(value.self_signed) ?? false,
      mismatched: flagOf(value.mismatched) ?? false,
      failed,
    },
    value,
    ['subject_an', 'chain', 'fingerprint_hash'],
  );
  if (failed) return [{ row: { ...row, error: textOf(value.error) }, records: [] }];
  const service = serviceDraft(
    { ip, host, port },
    { ...tls, tls: true, certificate: sha256Of(value), jarm: textOf(value.jarm_hash) },
  );
  const records = [
    ...domainDraft(host),
    ...addressDraft(ip, host),
    ...service.map((draft) => ({
      ...draft,
      sets: { ...draft.sets, tls_versions: textsOf(value.version_enum) },
    })),
    ...certificateDrafts(value),
  ];
  return [{ row, records }];
}
