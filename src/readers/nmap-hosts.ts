// The hosts of nmap's XML: tags in, rows and records out. A host counts when it is complete.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import type { ReadEvent, RecordDraft } from '#sonar/contracts/records.ts';
import { safeSample, storableText } from '#sonar/domain/records-storable.ts';

/** Open ports of one host that are kept: every port of tcp, udp and sctp. */
const maxPorts = 3 * 65_536;
const maxHostnames = 64;
const maxValueLength = 4_096;

type Attributes = Record<string, string>;

interface Port {
  protocol: string;
  port: number;
  open: boolean;
  service: Attributes;
}
interface Host {
  up: boolean;
  ip: string | null;
  mac: string | null;
  vendor: string | null;
  hostnames: string[];
  ports: Port[];
  /** Open ports beyond what is kept. */
  dropped: number;
}

export class NmapHosts {
  #events: ReadEvent[] = [];
  #host: Host | null = null;
  #port: Port | null = null;
  #rows = 0;
  #records = 0;
  #bad = 0;

  takeEvents(): ReadEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  warn(message: string): void {
    this.#events.push({ kind: 'warning', message });
  }

  bad(reason: string, sample: string): void {
    this.#events.push({ kind: 'bad', ordinal: this.#bad, reason, sample: safeSample(sample) });
    this.#bad += 1;
  }

  open(name: string, attributes: Attributes): void {
    if (name === 'host') {
      this.#host = { up: true, ip: null, mac: null, vendor: null, hostnames: [], ports: [], dropped: 0 };
      this.#port = null;
    } else if (name === 'finished' && attributes.exit === 'error') {
      this.warn(`nmap ended with an error: ${safeSample(attributes.errormsg ?? '')}`);
    } else if (this.#host !== null) this.#openInHost(this.#host, name, attributes);
  }

  close(name: string): void {
    if (name === 'port' && this.#host !== null && this.#port !== null) {
      if (this.#port.open && this.#host.ports.length < maxPorts) this.#host.ports.push(this.#port);
      else if (this.#port.open) this.#host.dropped += 1;
      this.#port = null;
    } else if (name === 'host' && this.#host !== null) {
      this.#finish(this.#host);
      this.#host = null;
    }
  }

  #openInHost(host: Host, name: string, attributes: Attributes): void {
    if (name === 'status') host.up = attributes.state === 'up';
    else if (name === 'address') readAddress(host, attributes);
    else if (name === 'hostname' && host.hostnames.length < maxHostnames) {
      const hostname = valueOf(attributes.name);
      if (hostname !== null && !host.hostnames.includes(hostname)) host.hostnames.push(hostname);
    } else if (name === 'port') {
      const { protocol = '', portid = '' } = attributes;
      this.#port = { protocol, port: portNumber(portid), open: false, service: {} };
    } else if (this.#port !== null && name === 'state') this.#port.open = attributes.state === 'open';
    else if (this.#port !== null && name === 'service') this.#port.service = attributes;
  }

  #finish(host: Host): void {
    if (host.ip === null) {
      this.bad('a host without an address', host.hostnames.join(' '));
      return;
    }
    if (host.dropped > 0) this.warn(`${host.ip}: ${host.dropped} open ports were left out`);
    if (!host.up) return;
    this.#events.push({ kind: 'records', ordinal: this.#records, records: [addressRecord(host, host.ip)] });
    this.#records += 1;
    for (const port of host.ports) {
      if (Number.isNaN(port.port)) {
        this.bad(`${host.ip}: a port without a number`, port.protocol);
        continue;
      }
      const row = rowOf(host, host.ip, port);
      this.#events.push({ kind: 'row', ordinal: this.#rows, row, records: [serviceRecord(host, row)] });
      this.#rows += 1;
    }
  }
}

function readAddress(host: Host, { addr, addrtype, vendor }: Attributes): void {
  const address = valueOf(addr);
  if (addrtype === 'mac') {
    host.mac = address;
    host.vendor = valueOf(vendor);
  } else host.ip ??= address;
}

/** Control characters that nmap writes as references XML forbids; the parser leaves those as they are. */
const forbiddenReference = /&#(0*[0-9]|0*[12][0-9]|0*3[01]|x0*1?[0-9a-f]);/gi;

const valueOf = (text: string | undefined): string | null =>
  text === undefined || text === ''
    ? null
    : storableText(text.replaceAll(forbiddenReference, '\uFFFD'), maxValueLength);

const portNumber = (text: string): number =>
  /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : Number.NaN;

function rowOf(host: Host, ip: string, { protocol, port, service }: Port): Row {
  const name = host.hostnames[0] ?? ip;
  const row: Row = {
    ip,
    host: name,
    port,
    protocol: storableText(protocol, 16),
    state: 'open',
    // nmap's word for a port that is not in its table.
    service: service.name === 'unknown' ? null : valueOf(service.name),
    product: valueOf(service.product),
    version: valueOf(service.version),
    tunnel: valueOf(service.tunnel),
  };
  const url = urlOf(name, port, row.service, row.tunnel);
  return url === null ? row : { ...row, url };
}

/** nmap says `https`, or `http` with an `ssl` tunnel, or a kin of http such as `http-proxy`. */
function urlOf(
  host: string,
  port: number,
  service: JsonValue | undefined,
  tunnel: JsonValue | undefined,
): string | null {
  if (typeof service !== 'string' || !/^https?(-|$)/.test(service)) return null;
  const tls = service.startsWith('https') || tunnel === 'ssl';
  const authority = host.includes(':') ? `[${host}]` : host;
  return URL.parse(`${tls ? 'https' : 'http'}://${authority}:${port}/`)?.href ?? null;
}

function addressRecord(host: Host, ip: string): RecordDraft {
  return {
    type: 'address',
    fields: { ip, mac: host.mac, vendor: host.vendor },
    sets: { hostnames: host.hostnames },
  };
}

function serviceRecord(host: Host, row: Row): RecordDraft {
  const { ip = null, port = null, protocol = null, state = null } = row;
  const { service = null, product = null, version = null, tunnel = null } = row;
  return {
    type: 'service',
    fields: { address: ip, port, protocol, state, service, product, version, tunnel },
    sets: { hostnames: host.hostnames },
  };
}
