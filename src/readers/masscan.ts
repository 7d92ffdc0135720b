// masscan: open ports and banners, in each of its text forms.
import type { Row } from '#sonar/contracts/definition.ts';
import { objectOf, objectsOf, textOf } from './field-values.ts';
import { readHostsXml } from './hosts-xml.ts';
import { jsonItems } from './json-rows.ts';
import { MasscanHosts } from './masscan-hosts.ts';
import { portRow } from './masscan-port.ts';
import { peek } from './peeked-source.ts';
import { ipOf } from './places.ts';
import type { Reader } from './reader.ts';
import { type Tool, type ToolRow, toolEvents } from './tool-reader.ts';

const tool: Tool = {
  name: 'masscan',
  rowsOf,
  plain: listRow,
  // The list's first and last line, and the last line of JSON before version 1.0.5.
  isNoise: (text) => /^(#.*|\{\s*"?finished"?\s*:\s*1\s*\},?)$/.test(text.trim()),
};

export const masscanReader: Reader = {
  name: 'masscan',
  async *read(bytes) {
    const source = await peek(bytes, 64);
    try {
      const xml = /^(\ufeff)?\s*</.test(source.start.toString('utf8'));
      if (xml) yield* readHostsXml(source.all(), new MasscanHosts());
      else yield* toolEvents(tool, jsonItems(source.all(), null));
    } finally {
      await source.close();
    }
  },
};

/** JSON has the ports of a host in a list, one JSON line has one port with its facts under `data`. */
function rowsOf(value: Row): ToolRow[] | string {
  const ip = ipOf(textOf(value.ip));
  if (ip === null) return '`ip` is no address';
  const ports = value.ports === undefined ? [{ ...value, ...objectOf(value.data) }] : objectsOf(value.ports);
  return ports.flatMap((port) => {
    const service = objectOf(port.service);
    return portRow(ip, {
      port: port.port ?? null,
      protocol: port.proto ?? null,
      state: port.status ?? 'open',
      application: service.name ?? port.service_name ?? null,
      banner: service.banner ?? port.banner ?? null,
      reason: port.reason ?? null,
      timestamp: value.timestamp ?? null,
    });
  });
}

/** `open tcp 80 192.0.2.1 1700000000`, `banner tcp 80 192.0.2.1 1700000000 http text`. */
function listRow(line: string): ToolRow[] | null {
  const [word = '', protocol = '', port = '', address = '', timestamp = '', application = '', ...rest] =
    line.split(' ');
  const ip = ipOf(address);
  if (ip === null || !/^[a-z]+$/.test(word) || !/^\d+$/.test(port)) return null;
  const banner = word === 'banner';
  return portRow(ip, {
    port,
    protocol,
    state: banner ? 'open' : word,
    application: banner ? application : null,
    banner: banner ? rest.join(' ') : null,
    reason: null,
    timestamp,
  });
}
