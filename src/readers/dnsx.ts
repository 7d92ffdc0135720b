// dnsx: answers of resolvers.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import type { RecordDraft } from '#sonar/contracts/records.ts';
import { dnsValue } from '#sonar/domain/records-dns.ts';
import { numberOf, objectsOf, textOf, textsOf, underscored, withRest } from './field-values.ts';
import { domainOf, hostOf, ipOf } from './places.ts';
import { addressDraft, domainDraft } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'dnsx',
  rowsOf: (value) => rowsOf(underscored(value)) ?? '`host` is neither domain nor address',
  // Without `-json` a line is the name; what `-resp` adds in brackets has no type, so only addresses count.
  plain: (line) => {
    const [, host = '', bracketed = ''] = /^(\S+)((?:\s+\[[^\]]*\])*)$/.exec(line) ?? [];
    const answers = [...bracketed.matchAll(/\[([^\]]*)\]/g)].map(([, answer = '']) => answer);
    const ips = answers.map(ipOf).filter((ip) => ip !== null);
    return rowsOf({
      host,
      a: ips.filter((ip) => !ip.includes(':')),
      aaaa: ips.filter((ip) => ip.includes(':')),
    });
  },
};
export const dnsxReader = toolReader(tool);

const listTypes = ['a', 'aaaa', 'cname', 'mx', 'ns', 'txt', 'ptr', 'srv', 'caa'] as const;

function rowsOf(value: Row): ToolRow[] | null {
  const host = hostOf(textOf(value.host)) ?? domainOf(textOf(value.host));
  if (host === null) return null;
  const answers = Object.fromEntries(listTypes.map((type) => [type, textsOf(value[type])]));
  const ips = textsOf([...textsOf(value.a), ...textsOf(value.aaaa)].flatMap((text) => ipOf(text) ?? []));
  const rcode = textOf(value.status_code);
  const ttl = numberOf(value.ttl);
  const row = withRest({ host, ip: ipOf(host) ?? ips[0] ?? null, ips, rcode, ttl, ...answers }, value, [
    'status_code',
    'all',
  ]);
  const records = [
    ...(rcode === null || rcode === 'NOERROR' ? domainDraft(host, { rcode }) : []),
    ...ips.flatMap((ip) => addressDraft(ip, host)),
    ...(ipOf(host) === null ? [] : addressDraft(host).map((draft) => withNames(draft, answers.ptr ?? []))),
    ...listTypes.flatMap((type) => (answers[type] ?? []).flatMap((text) => dnsDraft(host, type, text, ttl))),
    ...soaDrafts(host, value.soa, ttl),
  ];
  return [{ row, records }];
}

const withNames = (draft: RecordDraft, names: string[]): RecordDraft => ({
  ...draft,
  sets: { hostnames: names.flatMap((name) => domainOf(name) ?? []) },
});

/** An answer that its type cannot have (a resolver may send anything) is passed over, not a bad record. */
function dnsDraft(name: string, shortType: string, text: string, ttl: number | null): RecordDraft[] {
  const type = shortType.toUpperCase();
  const value = dnsValue(type, text);
  return value === null ? [] : [{ type: 'dns', fields: { name, type, value, ttl } }];
}

/** Newer versions write objects, which name the zone; older ones name server and mailbox as two texts. */
function soaDrafts(host: string, soa: JsonValue | undefined, ttl: number | null): RecordDraft[] {
  const objects = objectsOf(soa);
  const [server, mailbox = null] = textsOf(soa);
  if (objects.length === 0 && server !== undefined) return soaDraft(domainOf(host), server, { mailbox, ttl });
  return objects.flatMap((object) =>
    soaDraft(domainOf(textOf(object.name)) ?? domainOf(host), textOf(object.ns), {
      mailbox: textOf(object.mailbox),
      serial: numberOf(object.serial),
    }),
  );
}

const soaDraft = (
  name: string | null,
  value: string | null,
  fields: Record<string, JsonValue>,
): RecordDraft[] =>
  name === null || value === null ? [] : [{ type: 'dns', fields: { name, type: 'SOA', value, ...fields } }];
