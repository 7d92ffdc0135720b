// naabu: open ports.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import { flagOf, objectOf, portOf, textOf, textsOf, underscored, withRest } from './field-values.ts';
import { hostAndPort, hostOf, ipOf, portNames, urlOf } from './places.ts';
import { addressDraft, domainDraft, serviceDraft } from './record-drafts.ts';
import { type Tool, type ToolRow, toolReader } from './tool-reader.ts';

const tool: Tool = {
  name: 'naabu',
  rowsOf: (value) => rowsOf(underscored(value)),
  plain: (line) => {
    const place = hostAndPort(withoutNote(line));
    return place === null ? null : [rowOf({ host: place.host, port: place.port })].flat();
  },
};
export const naabuReader = toolReader(tool);

/** `host:port [note]` without its note. By index: as a pattern this would cost the square of a line of blanks. */
function withoutNote(line: string): string {
  if (!line.endsWith(']')) return line;
  const first = line.lastIndexOf(']', line.length - 2) + 1;
  for (let at = line.indexOf('[', first); at > 0; at = line.indexOf('[', at + 1))
    if (line.charAt(at - 1).trim() === '') return line.slice(0, at).trimEnd();
  return line;
}

function rowsOf(value: Row): ToolRow[] | string {
  if (hostOf(textOf(value.host) ?? textOf(value.ip)) === null) return 'neither `host` nor `ip` is a host';
  return rowOf(value);
}

function rowOf(value: Row): ToolRow[] {
  const named = hostOf(textOf(value.host));
  const ip = ipOf(textOf(value.ip)) ?? ipOf(named);
  const host = named ?? ip;
  const { port, protocol, tls } = portFields(value);
  const service = serviceFields(value, tls);
  const url =
    host !== null && port !== null && /^https?$/.test(service.service ?? '')
      ? urlOf(host, port, service.service === 'https' || service.tunnel === 'ssl')
      : null;
  const row = withRest(
    { host, ip, port, ...portNames(host, ip, port), protocol, tls, url, ...service },
    value,
    ['name', 'mac_address', 'proto', 'cpes'],
  );
  const known = { ...service, tls: tls === true ? true : null };
  return [
    {
      row,
      records: [
        ...domainDraft(host),
        ...addressDraft(ip, host, { mac: textOf(value.mac_address), cdn: textOf(value.cdn_name) }),
        ...serviceDraft({ ip, host, port, protocol }, known).map((draft) => ({
          ...draft,
          sets: { ...draft.sets, cpes: textsOf(value.cpes) },
        })),
      ],
    },
  ];
}

const protocols = ['tcp', 'udp'];

/** Some versions write the port as an object of three, with the protocol as a number. */
function portFields(value: Row): { port: number | null; protocol: string; tls: boolean | null } {
  const nested = objectOf(value.port);
  const field = (name: string, inner: string): JsonValue | undefined => nested[inner] ?? value[name];
  const protocol = field('protocol', 'Protocol');
  return {
    port: portOf(nested.Port ?? value.port),
    protocol: (typeof protocol === 'number' ? protocols[protocol] : textOf(protocol)?.toLowerCase()) ?? 'tcp',
    tls: flagOf(field('tls', 'TLS')),
  };
}

interface Service extends Row {
  service: string | null;
  product: string | null;
  version: string | null;
  tunnel: string | null;
}

function serviceFields(value: Row, tls: boolean | null): Service {
  const tunnel = textOf(value.tunnel) ?? (tls === true ? 'ssl' : null);
  return {
    service: textOf(value.name),
    product: textOf(value.product),
    version: textOf(value.version),
    tunnel,
  };
}
