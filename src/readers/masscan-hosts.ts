// masscan's XML: nmap's elements, one host for each port, the banner as an attribute.
import type { ReadEvent } from '#sonar/contracts/records.ts';
import { HostsEvents } from './hosts-events.ts';
import { type HostsSink, valueOf } from './hosts-xml.ts';
import { portRow } from './masscan-port.ts';
import { ipOf } from './places.ts';

type Attributes = Record<string, string>;

export class MasscanHosts implements HostsSink {
  readonly #events = new HostsEvents();
  #ip: string | null = null;
  #port: Attributes = {};
  #state: Attributes = {};
  #service: Attributes = {};

  takeEvents(): ReadEvent[] {
    return this.#events.take();
  }

  warn(message: string): void {
    this.#events.warn(message);
  }

  bad(reason: string, sample: string): void {
    this.#events.bad(reason, sample);
  }

  text(): void {}

  open(name: string, attributes: Attributes): void {
    if (name === 'host') this.#ip = null;
    else if (name === 'address') this.#ip ??= valueOf(attributes.addr);
    else if (name === 'port') {
      this.#port = attributes;
      this.#state = {};
      this.#service = {};
    } else if (name === 'state') this.#state = attributes;
    else if (name === 'service') this.#service = attributes;
  }

  close(name: string): void {
    if (name !== 'port') return;
    const ip = ipOf(this.#ip);
    if (ip === null) {
      this.#events.bad('a port of a host without an address', this.#ip ?? '');
      return;
    }
    const rows = portRow(ip, {
      port: this.#port.portid ?? null,
      protocol: this.#port.protocol ?? null,
      state: this.#state.state ?? null,
      application: valueOf(this.#service.name),
      banner: valueOf(this.#service.banner),
      reason: valueOf(this.#state.reason),
      timestamp: null,
    });
    for (const { row, records } of rows) {
      if (row === null) this.#events.records(records);
      else this.#events.row(row, records);
    }
  }
}
