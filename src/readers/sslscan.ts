import { readHostsXml } from './hosts-xml.ts';
import type { Reader } from './reader.ts';
import { SslscanTests } from './sslscan-tests.ts';

export const sslscanReader: Reader = {
  name: 'sslscan',
  read: (bytes) => readHostsXml(bytes, new SslscanTests(), { root: 'document', tool: 'sslscan' }),
};
