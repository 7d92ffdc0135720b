// The part of nmap's XML that a plain `nmap -sT -Pn -n` writes, in nmap's own form.
import { isIP, isIPv6 } from 'node:net';

/** Names of well-known ports, as nmap's own table gives them for a scan without version detection. */
const serviceNames = new Map([
  [21, 'ftp'],
  [22, 'ssh'],
  [23, 'telnet'],
  [25, 'smtp'],
  [53, 'domain'],
  [80, 'http'],
  [110, 'pop3'],
  [111, 'rpcbind'],
  [143, 'imap'],
  [389, 'ldap'],
  [443, 'https'],
  [445, 'microsoft-ds'],
  [465, 'smtps'],
  [587, 'submission'],
  [636, 'ldapssl'],
  [993, 'imaps'],
  [995, 'pop3s'],
  [1433, 'ms-sql-s'],
  [3306, 'mysql'],
  [3389, 'ms-wbt-server'],
  [5432, 'postgresql'],
  [5672, 'amqp'],
  [5900, 'vnc'],
  [6379, 'redis'],
  [8000, 'http-alt'],
  [8080, 'http-proxy'],
  [8443, 'https-alt'],
  [9100, 'jetdirect'],
  [27017, 'mongod'],
]);

/** @param {unknown} value */
const escape = (value) => String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const seconds = (ms) => Math.floor(ms / 1000);

/**
 * @param {{host: string, address: string, ports: readonly number[], states: readonly string[], startedAt: number, endedAt: number}} scan
 *   times in milliseconds since the epoch
 */
export function nmapXml({ host, address, ports, states, startedAt, endedAt }) {
  const count = (state) => states.filter((other) => other === state).length;
  const extra = ['closed', 'filtered']
    .filter((state) => count(state) > 0)
    .map((state) => `<extraports state="${state}" count="${count(state)}"/>\n`);
  const open = ports.filter((_, index) => states[index] === 'open').map(portElement);
  const hostnames = isIP(host) === 0 ? `<hostname name="${escape(host)}" type="user"/>\n` : '';
  return `<?xml version="1.0" encoding="UTF-8"?>
<nmaprun scanner="nmap" args="sonar-probe ports ${escape(host)}" start="${seconds(startedAt)}" version="sonar-probe" xmloutputversion="1.05">
<scaninfo type="connect" protocol="tcp" numservices="${ports.length}"/>
<host starttime="${seconds(startedAt)}" endtime="${seconds(endedAt)}"><status state="up" reason="user-set" reason_ttl="0"/>
<address addr="${escape(address)}" addrtype="${isIPv6(address) ? 'ipv6' : 'ipv4'}"/>
<hostnames>
${hostnames}</hostnames>
<ports>${extra.join('')}${open.join('')}</ports>
</host>
<runstats><finished time="${seconds(endedAt)}" elapsed="${((endedAt - startedAt) / 1000).toFixed(2)}" exit="success"/><hosts up="1" down="0" total="1"/></runstats>
</nmaprun>
`;
}

function portElement(port) {
  const name = serviceNames.get(port);
  const service = name === undefined ? '' : `<service name="${name}" method="table" conf="3"/>`;
  return `<port protocol="tcp" portid="${port}"><state state="open" reason="syn-ack" reason_ttl="0"/>${service}</port>\n`;
}
