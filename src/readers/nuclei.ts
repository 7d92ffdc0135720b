// nuclei: findings by templates.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { flagOf, numberOf, objectOf, portOf, textOf, textsOf, withRest } from './field-values.ts';
import { hostAndPort, hostOf, ipOf, webPlaceOf } from './places.ts';
import { addressDraft, domainDraft } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'nuclei',
  rowsOf: (value) => rowsOf(currentNames(value)),
  // `[template:matcher] [http] [high] https://a.test/ [extracted]`
  plain: (line) => {
    const [, rule = '', type = '', severity = '', location = ''] =
      /^\[([^\]\s]+)\] \[([a-z]+)\] \[([a-z]+)\] (\S+)/.exec(line) ?? [];
    if (rule === '') return null;
    const [template = '', matcher = null] = rule.split(/:(.*)/s);
    const rows = rowsOf({
      template_id: template,
      matcher_name: matcher,
      type,
      matched_at: location,
      info: { severity },
    });
    return typeof rows === 'string' ? null : rows;
  },
};
export const nucleiReader = toolReader(tool);

/** Dashes as underscores, and the names of versions before 2.5.3. */
function currentNames(value: Row): Row {
  const named = Object.fromEntries(
    Object.entries(value).map(([name, element]) => [name.replaceAll('-', '_'), element]),
  );
  const old = { template_id: value.templateID, matched_at: value.matched };
  for (const [name, element] of Object.entries(old)) if (element !== undefined) named[name] ??= element;
  return named;
}

function rowsOf(value: Row): ToolRow[] | string {
  const template = textOf(value.template_id);
  if (template === null) return '`template-id` is missing';
  const matched = textOf(value.matched_at);
  const place = placeOf(value, matched);
  const target = place.host === null ? (matched ?? textOf(value.host)) : targetOf(place.host, place.port);
  if (target === null) return 'neither `host` nor `matched-at` is there';
  const info = objectOf(value.info);
  const matcher = textOf(value.matcher_name) ?? textOf(value.extractor_name);
  const rule = matcher === null ? template : `${template}:${matcher}`;
  const severity = textOf(info.severity)?.toLowerCase() ?? null;
  const extracted = textsOf(value.extracted_results);
  const isMatch = flagOf(value.matcher_status) !== false;
  const name = textOf(info.name);
  const row = withRest(
    {
      rule,
      template,
      matcher,
      name,
      severity,
      type: textOf(value.type),
      ...place,
      location: matched,
      target,
      extracted,
      matched: isMatch,
    },
    value,
    spent,
  );
  const finding: RecordDraft = {
    type: 'finding',
    fields: {
      source: 'nuclei',
      rule,
      target,
      location: matched,
      name,
      severity,
      type: textOf(value.type),
      description: textOf(info.description),
      remediation: textOf(info.remediation),
      ...classificationOf(info),
      host: place.host,
      ip: place.ip,
      port: place.port,
      url: place.url,
    },
    sets: {
      extracted,
      cve: textsOf(objectOf(info.classification)['cve-id']),
      cwe: textsOf(objectOf(info.classification)['cwe-id']),
      references: textsOf(info.reference),
      tags: textsOf(info.tags).flatMap((tags) => tags.split(',')),
    },
  };
  const records = isMatch ? [finding, ...domainDraft(place.host), ...addressDraft(place.ip, place.host)] : [];
  return [{ row, records }];
}

/** The host is a name, a URL or `host:port`, by version and protocol; `matched-at` tells the port where it does not. */
function placeOf(
  value: Row,
  matched: string | null,
): Row & {
  host: string | null;
  ip: string | null;
  port: number | null;
  url: string | null;
} {
  const hostText = textOf(value.host);
  const candidates = [matched, textOf(value.url), hostText];
  const web = candidates.map(webPlaceOf).find(({ url }) => url !== null) ?? webPlaceOf(null);
  const pair = candidates
    .map((text) => (text === null ? null : hostAndPort(text)))
    .find((found) => found !== null);
  const host = hostOf(hostText) ?? webPlaceOf(hostText).host ?? pair?.host ?? web.host ?? hostOf(matched);
  const port =
    portOf(value.port) ?? (web.host === host ? web.port : null) ?? (pair?.host === host ? pair?.port : null);
  return {
    host,
    ip: ipOf(textOf(value.ip)) ?? ipOf(host),
    port: port ?? null,
    url: web.url,
    scheme: textOf(value.scheme) ?? web.scheme,
    path: web.path,
  };
}

const targetOf = (host: string, port: number | null): string => {
  const shown = host.includes(':') && port !== null ? `[${host}]` : host;
  return port === null ? shown : `${shown}:${port}`;
};

function classificationOf(info: Row): Record<string, JsonValue> {
  const classification = objectOf(info.classification);
  const score = classification['cvss-score'];
  return {
    cvss_score: typeof score === 'number' ? score : numberOf(score),
    cvss: textOf(classification['cvss-metrics']),
    cpe: textOf(classification.cpe),
  };
}

/** Said by the row's own fields. */
const spent = [
  'template_id',
  'templateID',
  'matcher_name',
  'extractor_name',
  'extracted_results',
  'matched_at',
  'matcher_status',
];
