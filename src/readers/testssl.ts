// testssl.sh: what each of its checks found, flat (--jsonfile) or by sections (--jsonfile-pretty).
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { objectsOf, portOf, textOf, textsOf, withRest } from './field-values.ts';
import { pemCertificate, pemCertificateDraft } from './pem-certificate.ts';
import { hostOf, ipOf, portNames, withPort } from './places.ts';
import { addressDraft, domainDraft, serviceDraft } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'testssl',
  wrapper: 'scanResult',
  rowsOf: (value) => {
    if (value.targetHost !== undefined) return sectionRows(value);
    const row = rowOf(value, value);
    return row === null ? '`id`, `severity` or `finding` is missing' : [row];
  },
};
export const testsslReader = toolReader(tool);

/** One host with all its checks: every list in it is a section. */
function sectionRows(host: Row): ToolRow[] {
  return Object.values(host).flatMap((section) =>
    Array.isArray(section) ? objectsOf(section).flatMap((check) => rowOf(check, host) ?? []) : [],
  );
}

interface Check {
  rule: string;
  severity: string;
  finding: string;
  host: string | null;
  ip: string | null;
  port: number | null;
  target: string | null;
  cve: string[];
  cwe: string[];
}

/** @param place has `ip` and `port`: the check itself, or in the pretty form its host */
function rowOf(value: Row, place: Row): ToolRow | null {
  const rule = textOf(value.id);
  const severity = textOf(value.severity)?.toLowerCase() ?? null;
  const finding = textOf(value.finding);
  if (rule === null || severity === null || finding === null) return null;
  const { host, ip } = hostsOf(place);
  const port = portOf(place.port);
  const target = withPort(ip ?? host, port) ?? host;
  const check = {
    rule,
    severity,
    finding,
    host,
    ip,
    port,
    target,
    cve: words(value.cve),
    cwe: words(value.cwe),
  };
  const row = withRest({ ...check, ...portNames(host, ip, port), protocol: 'tcp' }, value, ['id']);
  return { row, records: host === null ? [] : recordsOf(check) };
}

/** `name/address` in the flat form; of an address both are it. */
function hostsOf(place: Row): { host: string | null; ip: string | null } {
  const [name = '', address = ''] = (textOf(place.ip) ?? '').split('/');
  const target = hostOf(textOf(place.targetHost)) ?? hostOf(unbracketed(name));
  const ip = ipOf(unbracketed(address)) ?? ipOf(unbracketed(name)) ?? ipOf(target);
  return { host: target ?? ip, ip };
}

const unbracketed = (text: string): string => text.replace(/^\[(.+)\]$/, '$1');

const words = (value: JsonValue | undefined): string[] =>
  (textOf(value) ?? '').split(/[\s,]+/).filter((word) => word !== '');

function recordsOf(check: Check): RecordDraft[] {
  const version = versionOf(check);
  const versioned =
    version === null
      ? []
      : serviceDraft(check, { tls: true }).map((draft) => ({
          ...draft,
          sets: { ...draft.sets, tls_versions: [version] },
        }));
  return [
    ...domainDraft(check.host),
    ...addressDraft(check.ip, check.host),
    ...versioned,
    ...(check.rule === 'cert' ? certificateDrafts(check) : []),
    ...(severities.has(check.severity) ? [findingDraft(check)] : []),
  ];
}

/** Those that testssl.sh calls a problem of the server; `warn` and `fatal` are problems of the test. */
const severities = new Set(['low', 'medium', 'high', 'critical']);

const versions = new Map([
  ['SSLv2', 'SSLv2'],
  ['SSLv3', 'SSLv3'],
  ['TLS1', 'TLSv1.0'],
  ['TLS1_1', 'TLSv1.1'],
  ['TLS1_2', 'TLSv1.2'],
  ['TLS1_3', 'TLSv1.3'],
]);

/** The version of TLS that a check of `--protocols` found on offer. */
const versionOf = ({ rule, finding }: Check): string | null =>
  finding.startsWith('offered') ? (versions.get(rule) ?? null) : null;

function certificateDrafts(check: Check): RecordDraft[] {
  const shown = pemCertificate(check.finding);
  if (shown === null) return [];
  return [
    pemCertificateDraft(shown, textsOf(check.host)),
    ...serviceDraft(check, { tls: true, certificate: shown.sha256 }),
  ];
}

const findingDraft = (check: Check): RecordDraft => ({
  type: 'finding',
  fields: {
    source: 'testssl',
    rule: check.rule,
    target: check.target,
    name: check.rule,
    severity: check.severity,
    type: 'tls',
    description: check.finding,
    host: check.host,
    ip: check.ip,
    port: check.port,
  },
  sets: { cve: check.cve, cwe: check.cwe },
});
