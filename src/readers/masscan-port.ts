// One port of masscan, from whichever form, as a row and its records.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import { portOf, textOf } from './field-values.ts';
import { portNames, urlOf } from './places.ts';
import { addressDraft, serviceDraft } from './record-drafts.ts';
import type { ToolRow } from './tool-reader.ts';

type Facts = Record<
  'port' | 'protocol' | 'state' | 'application' | 'banner' | 'reason' | 'timestamp',
  JsonValue
>;

/** Names that say what the banner is, and not what service sent it. */
const notServices = ['unknown', 'title', 'html', 'X509', 'X509CA', 'http.server', 'vuln', 'error', 'safe'];

/** A port that is not open is nothing; a host that answered without one is its address alone. */
export function portRow(ip: string, facts: Facts): ToolRow[] {
  const address = addressDraft(ip);
  const port = portOf(facts.port);
  const protocol = textOf(facts.protocol) ?? 'tcp';
  const state = textOf(facts.state);
  // `up` is the answer to an ARP request, which has no port.
  if (state !== null && state !== 'open' && state !== 'up') return [];
  if (port === null || !['tcp', 'udp', 'sctp'].includes(protocol)) return [{ row: null, records: address }];
  const application = textOf(facts.application);
  const service = application === null || notServices.includes(application) ? null : application;
  const banner = textOf(facts.banner);
  const title = application === 'title' ? banner : null;
  const server = application === 'http.server' ? banner : null;
  const isBanner = banner !== null && (service !== null || application === 'unknown');
  const known = { service, banner: isBanner ? banner : null, title, server };
  const web = ['http', 'title', 'http.server', 'html'].includes(application ?? '');
  const row: Row = {
    host: ip,
    ip,
    port,
    ...portNames(ip, ip, port),
    protocol,
    state: 'open',
    ...known,
    url: web ? urlOf(ip, port, false) : null,
    reason: textOf(facts.reason),
    timestamp: textOf(facts.timestamp),
  };
  return [{ row, records: [...address, ...serviceDraft({ ip, host: null, port, protocol }, known)] }];
}
