import { readHostsXml } from './hosts-xml.ts';
import { NmapHosts } from './nmap-hosts.ts';
import type { Reader } from './reader.ts';

export const nmapXmlReader: Reader = {
  name: 'nmap-xml',
  read: (bytes) => readHostsXml(bytes, new NmapHosts()),
};
