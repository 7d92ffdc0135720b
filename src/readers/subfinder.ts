// subfinder: subdomains by passive sources.
import type { Row } from '#sonar/contracts/definition.ts';
import { textOf, textsOf, withRest } from './field-values.ts';
import { domainOf, ipOf } from './places.ts';
import { addressDraft, domainDraft } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'subfinder',
  rowsOf: (value) => rowsOf(value) ?? '`host` is no domain',
  plain: (line) => {
    // `-cs` and `-oI` add the address and the sources.
    const [host = '', ...more] = line.split(',');
    const ip = more.map(ipOf).find((address) => address !== null) ?? null;
    const sources = more.filter((text) => ipOf(text) === null).map((text) => text.replaceAll(/[[\]\s]/g, ''));
    return rowsOf({ host, ip, sources: sources.filter((text) => text !== '') });
  },
};
export const subfinderReader = toolReader(tool);

function rowsOf(value: Row): ToolRow[] | null {
  const host = domainOf(textOf(value.host));
  if (host === null) return null;
  const sources = textsOf(value.sources ?? value.source);
  const ip = ipOf(textOf(value.ip));
  const domain = domainOf(textOf(value.input));
  const row = withRest({ host, domain, ip, sources }, value, ['source', 'input']);
  const a = ip === null ? [] : [dnsOf(host, ip)];
  return [{ row, records: [...domainDraft(host, {}, { sources }), ...addressDraft(ip, host), ...a] }];
}

const dnsOf = (name: string, ip: string) => ({
  type: 'dns' as const,
  fields: { name, type: ip.includes(':') ? 'AAAA' : 'A', value: ip },
});
