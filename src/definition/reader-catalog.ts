// What the language must know of the readers: their names, the fields of their rows, and whether they make
// records of their own. The readers themselves are in `readers/`.

export interface ReaderEntry {
  /** Row field → what it holds; null where the rows are whatever the tool wrote. */
  rowFields: Readonly<Record<string, string>> | null;
  /** Its rows make records by themselves, so `record` and `fields` have no place. */
  ownRecords: boolean;
}

export const readerCatalog = {
  lines: { rowFields: { line: 'The line without its end.' }, ownRecords: false },
  jsonl: { rowFields: null, ownRecords: false },
  json: { rowFields: null, ownRecords: false },
  csv: { rowFields: null, ownRecords: false },
  'nmap-xml': {
    rowFields: {
      ip: 'Address of the host.',
      host: 'First name of the host; its address where it has none.',
      port: 'Number of the open port.',
      protocol: 'tcp, udp or sctp.',
      state: 'Always open.',
      service: 'Name of the service, or null.',
      product: 'Product behind the port, or null.',
      version: 'Version of the product, or null.',
      tunnel: 'ssl where the service is inside TLS, or null.',
      url: 'http or https URL where the service is one; else the field is missing.',
    },
    ownRecords: true,
  },
} as const satisfies Record<string, ReaderEntry>;

export type ReaderName = keyof typeof readerCatalog;
export const readerNames = Object.keys(readerCatalog) as ReaderName[];

export const readerEntry = (name: string): ReaderEntry | null =>
  Object.hasOwn(readerCatalog, name) ? readerCatalog[name as ReaderName] : null;
