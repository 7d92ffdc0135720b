// httpx: what answers on the web.
import type { Row } from '#sonar/contracts/definition.ts';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { certificateDrafts } from './certificate-drafts.ts';
import { flagOf, numberOf, objectOf, textOf, textsOf, underscored, withRest } from './field-values.ts';
import { hostOf, ipOf, webPlaceOf } from './places.ts';
import { addressDraft, domainDraft, serviceDraft, technologyDrafts, webService } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'httpx',
  rowsOf: (value) => rowsOf(underscored(value)),
  // `https://a.test [200] [Title]`: which bracket is what depends on the options.
  plain: (line) => {
    const url = line.split(/\s/, 1)[0] ?? '';
    return webPlaceOf(url).url === null ? null : foundRow({ url });
  },
};
export const httpxReader = toolReader(tool);

function rowsOf(value: Row): ToolRow[] | string {
  if (flagOf(value.failed) === true) return failedRow(value);
  return webPlaceOf(textOf(value.url)).url === null ? '`url` is no http or https URL' : foundRow(value);
}

/** What did not answer has no URL, so that `pick: url` passes it over. */
function failedRow(value: Row): ToolRow[] {
  const host = hostOf(textOf(value.input)) ?? webPlaceOf(textOf(value.url)).host;
  const row = { url: null, host, failed: true, input: textOf(value.input), error: textOf(value.error) };
  return [{ row, records: [] }];
}

function foundRow(value: Row): ToolRow[] {
  const place = webPlaceOf(textOf(value.url));
  const ips = addressesOf(value);
  const ip = ipOf(place.host) ?? ips[0] ?? null;
  const technologies = textsOf(value.tech ?? value.technologies);
  const page = {
    status: numberOf(value.status_code),
    title: textOf(value.title),
    server: textOf(value.webserver),
    content_type: textOf(value.content_type),
    content_length: numberOf(value.content_length),
    redirect: textOf(value.location),
    final_url: textOf(value.final_url),
  };
  const row = withRest({ ...place, ip, ips, ...page, technologies, failed: false }, value, spent);
  const { host, port, scheme } = place;
  const more = {
    favicon: textOf(value.favicon ?? value.favicon_mmh3),
    jarm: textOf(value.jarm ?? value.jarm_hash),
    cdn: textOf(value.cdn_name) ?? (typeof value.cdn === 'string' ? textOf(value.cdn) : null),
    method: textOf(value.method),
  };
  const endpoint: RecordDraft = {
    type: 'endpoint',
    fields: { url: place.url, ...page, ...more, ip, host },
    sets: { technologies, cnames: textsOf(value.cname ?? value.cnames) },
  };
  const records = [
    endpoint,
    ...domainDraft(host),
    ...addressDraft(ip, host),
    ...serviceDraft({ ip, host, port }, webService(scheme)),
    ...technologyDrafts(place.url, technologies),
    ...certificateDrafts(objectOf(value.tls ?? value.tls_grab)),
  ];
  return [{ row, records }];
}

/** Newer versions keep the address under `host_ip` and the name under `host`, older ones the address under `host`. */
const addressesOf = (value: Row): string[] => {
  const texts = [value.host_ip, value.host, value.a, value.aaaa].flatMap((field) => textsOf(field));
  return [...new Set(texts.flatMap((text) => ipOf(text) ?? []))];
};

/** Said by the row's own fields. */
const spent = ['location', 'host_ip', 'a', 'aaaa', 'tech', 'webserver', 'status_code', 'tls', 'tls_grab'];
