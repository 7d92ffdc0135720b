// gowitness: screenshots of web pages and what was seen with them.
import type { Row } from '#sonar/contracts/definition.ts';
import { flagOf, numberOf, objectOf, objectsOf, textOf, textsOf } from './field-values.ts';
import { ipOf, webPlaceOf } from './places.ts';
import { addressDraft, domainDraft, serviceDraft, technologyDrafts, webService } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'gowitness',
  rowsOf: (value) => rowsOf(value) ?? '`url` is no http or https URL',
};
export const gowitnessReader = toolReader(tool);

function rowsOf(value: Row): ToolRow[] | null {
  const place = webPlaceOf(textOf(value.url));
  if (place.url === null) return null;
  const failed = flagOf(value.failed) === true;
  const { host, port, scheme } = place;
  const ip = ipOf(host) ?? remoteIpOf(value, place.url);
  const technologies = objectsOf(value.technologies).flatMap((technology) => textsOf(technology.value));
  const tls = objectOf(value.tls);
  const page = {
    status: numberOf(value.response_code),
    title: textOf(value.title),
    server: headerOf(value, 'server'),
    content_type: headerOf(value, 'content-type'),
    content_length: numberOf(value.content_length),
    final_url: textOf(value.final_url),
    screenshot: textOf(value.file_name),
  };
  const row: Row = {
    ...place,
    // What did not answer has no URL, so that `pick: url` passes it over.
    url: failed ? null : place.url,
    ip,
    ...page,
    technologies,
    failed,
    error: textOf(value.failed_reason),
    input: textOf(value.url),
    probed_at: textOf(value.probed_at),
    tls_version: textOf(tls.protocol),
    subject: textOf(tls.subject_name),
    issuer: textOf(tls.issuer),
    names: objectsOf(tls.san_list).flatMap((name) => textsOf(name.value)),
  };
  if (failed) return [{ row, records: [] }];
  return [
    {
      row,
      records: [
        {
          type: 'endpoint',
          fields: { url: place.url, host, ip, ...page, perception_hash: textOf(value.perception_hash) },
          sets: { technologies },
        },
        ...domainDraft(host),
        ...addressDraft(ip, host),
        ...serviceDraft({ ip, host, port }, webService(scheme)),
        ...technologyDrafts(place.url, technologies),
      ],
    },
  ];
}

const headerOf = (value: Row, name: string): string | null =>
  textOf(objectsOf(value.headers).find(({ key }) => textOf(key)?.toLowerCase() === name)?.value);

/** The browser notes the address of every request it made; the page's own is wanted. */
function remoteIpOf(value: Row, url: string): string | null {
  const request = objectsOf(value.network).find((entry) => webPlaceOf(textOf(entry.url)).url === url);
  return ipOf(textOf(request?.remote_ip)?.replaceAll(/[[\]]/g, '') ?? null);
}
