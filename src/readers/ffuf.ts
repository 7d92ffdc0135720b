// ffuf: paths and hosts that a word list came to.
import type { Row } from '#sonar/contracts/definition.ts';
import { numberOf, objectOf, textOf, underscored, withRest } from './field-values.ts';
import { domainOf, webPlaceOf } from './places.ts';
import { domainDraft } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'ffuf',
  wrapper: 'results',
  rowsOf: (value) => rowsOf(underscored(value)) ?? '`url` is no http or https URL',
};
export const ffufReader = toolReader(tool);

function rowsOf(value: Row): ToolRow[] | null {
  const place = webPlaceOf(textOf(value.url));
  if (place.url === null) return null;
  // Of a hunt for virtual hosts every URL is the same, and the answer belongs to the Host header.
  const asked = domainOf(textOf(value.host)?.replace(/:\d+$/, '') ?? null);
  const vhost = asked === place.host ? null : asked;
  const page = {
    status: numberOf(value.status),
    content_type: textOf(value.content_type),
    content_length: numberOf(value.length),
    redirect: textOf(value.redirectlocation),
  };
  const row = withRest({ ...place, ...page, vhost, keywords: keywordsOf(value) }, value, [
    'length',
    'redirectlocation',
    'resultfile',
    'input',
  ]);
  return [
    {
      row,
      records: [
        {
          type: 'endpoint',
          fields: {
            url: place.url,
            host: place.host,
            ...page,
            words: numberOf(value.words),
            lines: numberOf(value.lines),
          },
          sets: { vhosts: vhost === null ? [] : [vhost] },
        },
        ...domainDraft(place.host),
        ...domainDraft(vhost),
      ],
    },
  ];
}

/** The first versions wrote the word alone. */
const keywordsOf = ({ input }: Row): Row => (typeof input === 'string' ? { FUZZ: input } : objectOf(input));
