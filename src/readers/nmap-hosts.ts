// The hosts of nmap's XML: tags in, rows and records out. A host counts when it is complete.
import type { Row } from '#sonar/contracts/definition.ts';
import type { ReadEvent, RecordDraft } from '#sonar/contracts/records.ts';
import { safeSample, storableText } from '#sonar/domain/records-storable.ts';
import { HostsEvents } from './hosts-events.ts';
import { type HostsSink, valueOf } from './hosts-xml.ts';
import { NmapScripts } from './nmap-scripts.ts';
import { portNames, urlOf } from './places.ts';

/** Open ports of one host that are kept: every port of tcp, udp and sctp. */
const maxPorts = 3 * 65_536;
const maxHostnames = 64;
const maxCpes = 16;
const maxCpeLength = 4_096;

type Attributes = Record<string, string>;

interface Port {
  protocol: string;
  port: number;
  open: boolean;
  service: Attributes;
  cpes: string[];
  scripts: NmapScripts;
}
interface Host {
  up: boolean;
  ip: string | null;
  mac: string | null;
  vendor: string | null;
  os: { name: string | null; accuracy: number };
  hostnames: string[];
  cpes: string[];
  scripts: NmapScripts;
  ports: Port[];
  /** Open ports beyond what is kept. */
  dropped: number;
}

export class NmapHosts implements HostsSink {
  readonly #events = new HostsEvents();
  #host: Host | null = null;
  #port: Port | null = null;
  #cpe: string | null = null;

  takeEvents(): ReadEvent[] {
    return this.#events.take();
  }

  warn(message: string): void {
    this.#events.warn(message);
  }

  bad(reason: string, sample: string): void {
    this.#events.bad(reason, sample);
  }

  open(name: string, attributes: Attributes): void {
    if (name === 'host') {
      this.#host = newHost();
      this.#port = null;
    } else if (name === 'finished' && attributes.exit === 'error') {
      this.warn(`nmap ended with an error: ${safeSample(attributes.errormsg ?? '')}`);
    } else if (this.#host !== null) this.#openInHost(this.#host, name, attributes);
  }

  text(text: string): void {
    if (this.#cpe !== null) this.#cpe = (this.#cpe + text.slice(0, maxCpeLength)).slice(0, maxCpeLength);
    else (this.#port ?? this.#host)?.scripts.text(text);
  }

  close(name: string): void {
    const host = this.#host;
    if (host === null) return;
    const port = this.#port;
    if (name === 'port' && port !== null) {
      if (port.open && host.ports.length < maxPorts) host.ports.push(port);
      else if (port.open) host.dropped += 1;
      this.#port = null;
    } else if (name === 'host') {
      this.#finish(host);
      this.#host = null;
    } else if (name === 'cpe') {
      const { cpes } = port ?? host;
      const cpe = valueOf(this.#cpe?.trim());
      if (cpe !== null && cpes.length < maxCpes && !cpes.includes(cpe)) cpes.push(cpe);
      this.#cpe = null;
    } else (port ?? host).scripts.close(name);
  }

  #openInHost(host: Host, name: string, attributes: Attributes): void {
    const port = this.#port;
    if (name === 'status') host.up = attributes.state === 'up';
    else if (name === 'address') readAddress(host, attributes);
    else if (name === 'hostname' && host.hostnames.length < maxHostnames) {
      const hostname = valueOf(attributes.name);
      if (hostname !== null && !host.hostnames.includes(hostname)) host.hostnames.push(hostname);
    } else if (name === 'osmatch') readOs(host, attributes);
    else if (name === 'port') this.#port = newPort(attributes);
    else if (name === 'cpe') this.#cpe = '';
    else if (port !== null && name === 'state') port.open = attributes.state === 'open';
    else if (port !== null && name === 'service') port.service = attributes;
    else (port ?? host).scripts.open(name, attributes);
  }

  #finish(host: Host): void {
    if (host.ip === null) {
      this.bad('a host without an address', host.hostnames.join(' '));
      return;
    }
    if (host.dropped > 0) this.warn(`${host.ip}: ${host.dropped} open ports were left out`);
    if (!host.up) return;
    this.#events.records([addressRecord(host, host.ip)]);
    for (const port of host.ports) {
      if (Number.isNaN(port.port)) {
        this.bad(`${host.ip}: a port without a number`, port.protocol);
        continue;
      }
      const row = rowOf(host, host.ip, port);
      this.#events.row(row, [serviceRecord(host, port, row), ...port.scripts.certificate(host.hostnames)]);
    }
  }
}

const newHost = (): Host => ({
  up: true,
  ip: null,
  mac: null,
  vendor: null,
  os: { name: null, accuracy: -1 },
  hostnames: [],
  cpes: [],
  scripts: new NmapScripts(),
  ports: [],
  dropped: 0,
});

const newPort = ({ protocol = '', portid = '' }: Attributes): Port => ({
  protocol,
  port: portNumber(portid),
  open: false,
  service: {},
  cpes: [],
  scripts: new NmapScripts(),
});

function readAddress(host: Host, { addr, addrtype, vendor }: Attributes): void {
  const address = valueOf(addr);
  if (addrtype === 'mac') {
    host.mac = address;
    host.vendor = valueOf(vendor);
  } else host.ip ??= address;
}

/** Of several guesses the first of the highest accuracy counts. */
function readOs(host: Host, attributes: Attributes): void {
  const accuracy = /^\d{1,3}$/.test(attributes.accuracy ?? '') ? Number(attributes.accuracy) : 0;
  if (accuracy > host.os.accuracy) host.os = { name: valueOf(attributes.name), accuracy };
}

const portNumber = (text: string): number =>
  /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : Number.NaN;

function rowOf(host: Host, ip: string, { protocol, port, service, cpes, scripts }: Port): Row {
  const name = host.hostnames[0] ?? ip;
  const row: Row = {
    ip,
    host: name,
    hostnames: host.hostnames,
    port,
    ...portNames(name, ip, port),
    protocol: storableText(protocol, 16),
    state: 'open',
    // nmap's word for a port that is not in its table.
    service: service.name === 'unknown' ? null : valueOf(service.name),
    product: valueOf(service.product),
    version: valueOf(service.version),
    extrainfo: valueOf(service.extrainfo),
    tunnel: valueOf(service.tunnel),
    title: scripts.title,
    cpes,
    scripts: scripts.outputs,
  };
  // nmap says `https`, or `http` with an `ssl` tunnel, or a kin of http such as `http-proxy`.
  const web = typeof row.service === 'string' && /^https?(-|$)/.test(row.service);
  const tls = service.name?.startsWith('https') === true || row.tunnel === 'ssl';
  const url = web ? urlOf(name, port, tls) : null;
  return url === null ? row : { ...row, url };
}

const addressRecord = (host: Host, ip: string): RecordDraft => ({
  type: 'address',
  fields: {
    ip,
    mac: host.mac,
    vendor: host.vendor,
    os: host.os.name,
    scripts: outputsOf(host.scripts),
  },
  sets: { hostnames: host.hostnames, ...(host.cpes.length === 0 ? {} : { cpes: host.cpes }) },
});

function serviceRecord(host: Host, { service: said, cpes, scripts }: Port, row: Row): RecordDraft {
  const { ip = null, port = null, protocol = null, state = null, title = null } = row;
  const { service = null, product = null, version = null, tunnel = null, extrainfo = null } = row;
  return {
    type: 'service',
    fields: {
      address: ip,
      port,
      protocol,
      state,
      service,
      product,
      version,
      extrainfo,
      tunnel,
      os: valueOf(said.ostype),
      device: valueOf(said.devicetype),
      title,
      scripts: outputsOf(scripts),
    },
    sets: { hostnames: host.hostnames, ...(cpes.length === 0 ? {} : { cpes }) },
  };
}

const outputsOf = ({ outputs }: NmapScripts): Record<string, string> | null =>
  Object.keys(outputs).length === 0 ? null : outputs;
