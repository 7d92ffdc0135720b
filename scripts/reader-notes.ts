// What is known of each tool's output, and from where. Pages and sources were read as stored copies of the public
// repositories; the commit or the pull request names the version.
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import type { ReaderName } from '#sonar/definition/reader-catalog.ts';

export interface ReaderNotes {
  /** Forms and versions that are read, each with its source. */
  forms: string[];
  omits: string;
  /** A file of test/fixtures/readers. */
  example: string;
  /** How the example makes records, for readers without their own. */
  spec: Partial<ReadSpec>;
}

const notRun = '*made after the documentation, not from a run*';
const source = (repository: string, path: string): string =>
  `[${repository}: ${path}](https://github.com/${repository}/blob/HEAD/${path})`;
const thread = (repository: string, number: number): string =>
  `[${repository}#${number}](https://github.com/${repository}/issues/${number})`;

export const readerNotes: Record<ReaderName, ReaderNotes> = {
  lines: {
    forms: ['Lines end with LF or CRLF; the last one needs no end; blank lines are nothing.'],
    omits: 'nothing.',
    example: 'subfinder.txt',
    spec: { record: 'domain', fields: { name: 'line' } },
  },
  jsonl: {
    forms: ['A line that is JSON but no object is a bad record.'],
    omits: 'arrays and objects over several lines; `json` reads those.',
    example: 'httpx.jsonl',
    spec: { record: 'endpoint', fields: { url: 'url', title: 'title' } },
  },
  json: {
    forms: ['Lines, arrays and objects one after another; arrays in arrays are flattened.'],
    omits: 'objects inside an object: an object is one row. `fields` reaches into it by dotted paths.',
    example: 'nuclei-export.json',
    spec: { record: 'finding', fields: { source: 'type', rule: 'template-id', target: 'host' } },
  },
  csv: {
    forms: [
      'The delimiter (comma, semicolon, tab or bar) is what the header uses most; quotes as in RFC 4180, read leniently.',
      'A quote that is never closed costs its own line. Columns without a name, or with another’s, are `column_N`.',
    ],
    omits: 'files without a header; numbers and dates stay text.',
    example: 'hosts.csv',
    spec: { record: 'service', fields: { address: 'ip', port: 'port', service: 'service' } },
  },
  'nmap-xml': {
    forms: [
      'nmap 7.93 of Debian 12: recorded from runs on loopback, and run again by a test where nmap is installed.',
      'Control characters that XML forbids are replaced with one warning; a host counts when it is complete.',
      'A certificate comes from the script `ssl-cert`; its SHA-256 is made of the PEM that nmap prints.',
    ],
    omits:
      'ports that are not open (closed, filtered, open|filtered, and the counts in `extraports`), traceroutes, timing, uptime, and tables of scripts except those of `ssl-cert` and `http-title`; the text that a script printed is kept.',
    example: 'nmap-7.93.xml',
    spec: {},
  },
  naabu: {
    forms: [
      `JSON Lines with a number as port: ${source('projectdiscovery/naabu', 'pkg/runner/output.go')}; ${notRun}.`,
      `The port as an object \`{"Port", "Protocol", "TLS"}\` (2.1 before July 2023): ${thread('projectdiscovery/naabu', 729)}; ${notRun}.`,
      `Host and port alone (2.0): ${thread('projectdiscovery/naabu', 69)}; ${notRun}. Without an address there is no service record.`,
      'Lines `host:port`, also with a CDN in brackets, from the same source.',
    ],
    omits: '`-csv` (the reader `csv` reads it) and fields left out by `-exclude-output`.',
    example: 'naabu.jsonl',
    spec: {},
  },
  masscan: {
    forms: [
      'masscan 1.3.2 of Debian 12, all four forms: recorded from runs in a network of their own (without banners). It cannot scan loopback: tried there, it found nothing and did not end.',
      `Banners in each form: ${source('robertdavidgraham/masscan', 'src/out-json.c')}, out-ndjson.c, out-text.c, out-xml.c, and names of services in masscan-app.c; ${notRun}.`,
      `The array with a trailing comma (1.0.4 to 1.0.6): ${thread('robertdavidgraham/masscan', 288)}; objects with commas and \`{finished: 1}\` without an array (1.0.3): ${thread('robertdavidgraham/masscan', 124)}, ${thread('robertdavidgraham/masscan', 147)}; ${notRun}.`,
    ],
    omits:
      'closed ports; the binary, grepable, unicornscan and redis outputs; JSON without quotes around its keys (2014, `robertdavidgraham/masscan#122`); banners of certificates, of which only the port is kept.',
    example: 'masscan-banners.ndjson',
    spec: {},
  },
  tlsx: {
    forms: [
      `JSON Lines: ${source('projectdiscovery/tlsx', 'pkg/tlsx/clients/clients.go')}; ${notRun}.`,
      'Lines `host:port`, also with values in brackets after it.',
    ],
    omits:
      'enumerated ciphers and hellos as records (rows carry `cipher_enum`); certificates without a fingerprint; names of a certificate as domains: they may lie outside the scope.',
    example: 'tlsx.jsonl',
    spec: {},
  },
  sslscan: {
    forms: [
      'sslscan 2.0.7 of Debian 12, one target or many (--targets): recorded from runs on loopback, and run again by a test where sslscan is installed.',
      'Findings are what sslscan colours: versions before TLS 1.2, ciphers that it rates null, anonymous, weak or medium, Heartbleed, insecure renegotiation, compression, certificates that have expired or signed themselves.',
      'A port that speaks no TLS, and what sslscan reports as an error, is a warning and no row.',
    ],
    omits:
      'groups, signature algorithms, client CAs and OCSP answers; the address of a host that was given by name, which sslscan does not print: give it the address, and the name by --sni-name.',
    example: 'sslscan-2.0.7.xml',
    spec: {},
  },
  testssl: {
    forms: [
      'testssl.sh 3.0.8 of Debian 12, flat and pretty: recorded from runs on loopback, and run again by a test where testssl.sh is installed.',
      'Checks rated low to critical make findings; `warn` and `fatal` say that a check itself failed, and make none. The certificate comes from the check `cert` of --server-defaults.',
    ],
    omits:
      'the CSV, HTML and log files; with --severity the versions and certificates, which are rated ok or info.',
    example: 'testssl-3.0.8.json',
    spec: {},
  },
  subfinder: {
    forms: [
      `JSON Lines with \`source\`, or \`sources\` (-cs), also with \`ip\` (-oI): v2/pkg/runner/outputter.go of ${source('projectdiscovery/subfinder', 'pkg/runner/outputter.go')}; older ones without \`input\`: the same file at commit 100438c; ${notRun}.`,
      'Lines: the name alone, `name,address,source` (-oI), `name,[sources]` (-cs).',
    ],
    omits: 'statistics.',
    example: 'subfinder.jsonl',
    spec: {},
  },
  dnsx: {
    forms: [
      `JSON Lines: ${source('projectdiscovery/dnsx', 'libs/dnsx/dnsx.go')} and ${source('projectdiscovery/retryabledns', 'client.go')}; SOA as objects: ${thread('projectdiscovery/dnsx', 874)}; SOA as two texts: retryabledns at commit 003711f; ${notRun}.`,
      'Lines: the name, and of what `-resp` adds in brackets the addresses.',
    ],
    omits:
      'traces, zone transfers, raw answers; names that do not exist make a row and no record. CNAME, NS and MX targets make `dns` records, not domains: they may lie outside the scope.',
    example: 'dnsx.jsonl',
    spec: {},
  },
  httpx: {
    forms: [
      `JSON Lines with underscores: ${source('projectdiscovery/httpx', 'runner/types.go')}; the address under \`host\`, in newer versions under \`host_ip\`; ${notRun}.`,
      `JSON Lines with dashes (before September 2022): ${thread('projectdiscovery/httpx', 747)}; ${notRun}.`,
      'Lines that begin with a URL: of what follows in brackets nothing is taken.',
    ],
    omits: '`-csv`; bodies, headers and pictures; chains of redirects but for their end.',
    example: 'httpx.jsonl',
    spec: {},
  },
  katana: {
    forms: [
      `JSON Lines with request and response: ${source('projectdiscovery/katana', 'pkg/output/result.go')}, pkg/navigation/request.go, pkg/navigation/response.go; ${notRun}.`,
      'JSON Lines of the first versions, all in one object: pkg/output/output.go as of commit 43e7a73; likewise.',
      'Lines of URLs.',
    ],
    omits:
      'forms, XHR requests, custom fields as records (rows do not carry them); URLs that are not http or https are bad records.',
    example: 'katana.jsonl',
    spec: {},
  },
  ffuf: {
    forms: [
      `One object with \`results\` (-of json, ejson), read without holding it: ${source('ffuf/ffuf', 'pkg/output/file_json.go')}; ${notRun}.`,
      'JSON Lines (-json), whose `input` is base64: the type `Result` and the end-to-end tests of ffuf; likewise.',
    ],
    omits: '`-of csv`, `ecsv`, `html` and `md`; what the scraper took out is in the row only.',
    example: 'ffuf.json',
    spec: {},
  },
  nuclei: {
    forms: [
      `JSON Lines of version 3: ${source('projectdiscovery/nuclei', 'pkg/output/output.go')}, pkg/model/model.go; of version 2: v2/pkg/output/output.go; ${notRun}.`,
      `The names before 2.5.3 (\`templateID\`, \`matched\`, \`matcher_name\`, …): ${thread('projectdiscovery/nuclei', 1148)}; ${notRun}.`,
      'A JSON array (`-json-export`), and nuclei’s own lines `[template:matcher] [http] [high] URL`.',
    ],
    omits:
      'requests and responses; SARIF and Markdown reports; `-matcher-status` lines without a match make a row and no record. Two versions write `host` differently: the target is always host and port.',
    example: 'nuclei.jsonl',
    spec: {},
  },
  gowitness: {
    forms: [
      `JSON Lines of version 3: ${source('sensepost/gowitness', 'pkg/models/models.go')} and pkg/writers/json.go; ${notRun}.`,
    ],
    omits:
      'version 2, whose results are a SQLite file; the CSV writer; pages, console and network logs (the address of the page is taken from the latter). Its certificates have no fingerprint, so they make no record.',
    example: 'gowitness.jsonl',
    spec: {},
  },
};
