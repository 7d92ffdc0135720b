// katana: URLs that a crawl came to.
import type { Row } from '#sonar/contracts/definition.ts';
import { numberOf, objectOf, textOf, textsOf } from './field-values.ts';
import { webPlaceOf } from './places.ts';
import { domainDraft, technologyDrafts } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'katana',
  rowsOf: (value) => rowsOf(value) ?? 'the endpoint is no http or https URL',
  plain: (line) => rowsOf({ endpoint: line }),
};
export const katanaReader = toolReader(tool);

/** Versions since 1.0 have request and response apart, the first ones have all in one. */
function rowsOf(value: Row): ToolRow[] | null {
  const request = value.request === undefined ? value : objectOf(value.request);
  const response = objectOf(value.response);
  const headers = objectOf(response.headers);
  const place = webPlaceOf(textOf(request.endpoint));
  if (place.url === null) return null;
  const technologies = textsOf(response.technologies);
  const error = textOf(value.error);
  const page = {
    status: numberOf(response.status_code ?? value.status),
    method: textOf(request.method),
    server: textOf(headers.server),
    content_type: textOf(headers.content_type ?? headers['content-type']),
    content_length: numberOf(response.content_length),
    redirect: textOf(headers.location),
  };
  const found = {
    source: textOf(request.source),
    tag: textOf(request.tag),
    attribute: textOf(request.attribute),
  };
  const row = { ...place, ...page, ...found, technologies, error, timestamp: textOf(value.timestamp) };
  // Without an answer it is a link, and nothing is known to be there.
  if (error !== null) return [{ row, records: [] }];
  return [
    {
      row,
      records: [
        {
          type: 'endpoint',
          fields: { url: place.url, host: place.host, ...page },
          sets: { technologies, sources: found.source === null ? [] : [found.source] },
        },
        ...domainDraft(place.host),
        ...technologyDrafts(place.url, technologies),
      ],
    },
  ];
}
