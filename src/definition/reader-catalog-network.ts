// Readers of tools that look at names, addresses, ports and TLS.

/** Fields that rows of several readers have, with one meaning everywhere. */
export const place = {
  host: 'Name of the host; its address where it has no name.',
  ip: 'Address of the host, or null.',
  port: 'Number of the port, or null.',
} as const;

/** As command lines take them. */
const portNames = {
  host_port: 'Host and port, `www.example.com:443` or `[2001:db8::1]:443`, or null.',
  ip_port: 'Address and port, likewise, or null.',
} as const;

const openPort = {
  ...place,
  protocol: 'tcp, udp or sctp.',
} as const;

const service = {
  service: 'Name of the service, or null.',
  product: 'Product behind the port, or null.',
  version: 'Version of the product, or null.',
  tunnel: 'ssl where the service is inside TLS, or null.',
} as const;

export const portReaders = {
  'nmap-xml': {
    reads: 'nmap, its XML (-oX)',
    rowFields: {
      ip: 'Address of the host.',
      host: 'First name of the host; its address where it has none.',
      hostnames: 'All names of the host.',
      port: 'Number of the open port.',
      ...portNames,
      protocol: openPort.protocol,
      state: 'Always open.',
      ...service,
      extrainfo: 'What else nmap says of the product, or null.',
      title: 'Title of the page, where http-title ran, or null.',
      cpes: 'CPE names of the service.',
      scripts: 'Script: what it printed.',
      url: 'http or https URL where the service is one; else the field is missing.',
    },
    ownRecords: true,
    records: ['address', 'service', 'certificate'],
  },
  naabu: {
    reads: 'naabu, JSON Lines (-json) or host:port lines',
    rowFields: {
      ...openPort,
      ...portNames,
      tls: 'Whether naabu says TLS, or null.',
      ...service,
      url: 'http or https URL where naabu names the service so, or null.',
    },
    ownRecords: true,
    records: ['address', 'service', 'domain'],
  },
  masscan: {
    reads: 'masscan, JSON (-oJ), JSON Lines (-oD), its list (-oL) or XML (-oX)',
    rowFields: {
      host: 'Address of the host: masscan knows no names.',
      ip: 'Address of the host.',
      port: 'Number of the open port.',
      ...portNames,
      protocol: openPort.protocol,
      state: 'Always open.',
      service: service.service,
      banner: 'What the service sent, or null.',
      title: 'Title of the page, or null.',
      server: 'Server header, or null.',
      url: 'http URL where a banner shows one, or null.',
      reason: 'Flags of the answer, or null.',
      timestamp: 'Seconds since 1970 as text, or null.',
    },
    ownRecords: true,
    records: ['address', 'service'],
  },
  tlsx: {
    reads: 'tlsx, JSON Lines (-json) or host:port lines',
    rowFields: {
      ...openPort,
      ...portNames,
      tls_version: 'Version of TLS that was spoken, or null.',
      cipher: 'Cipher that was used, or null.',
      sha256: 'Fingerprint of the certificate, or null.',
      subject: 'Common name of the certificate, or null.',
      issuer: 'Common name of its issuer, or null.',
      names: 'Names that the certificate is for.',
      not_before: 'When it begins to hold, or null.',
      not_after: 'When it ends, or null.',
      expired: 'Whether it has ended.',
      self_signed: 'Whether it signed itself.',
      mismatched: 'Whether it is for another host.',
      failed: 'Whether nothing answered; such rows make no records.',
    },
    ownRecords: true,
    records: ['certificate', 'service', 'address', 'domain'],
  },
  sslscan: {
    reads: 'sslscan, its XML (--xml)',
    rowFields: {
      ...openPort,
      ...portNames,
      host: 'Name that was asked for (--sni-name) or scanned; the address where there is none.',
      tls_versions: 'Versions that are on offer, as SSLv3 and TLSv1.2.',
      ciphers: 'Ciphers that are accepted.',
      preferred: 'Cipher that the server prefers, or null.',
      sha256: 'Fingerprint of the certificate, or null.',
      subject: 'Common name of the certificate, or null.',
      issuer: 'Common name of its issuer, or null.',
      names: 'Names that the certificate is for.',
      not_before: 'When it begins to hold, or null.',
      not_after: 'When it ends, or null.',
      expired: 'Whether it has ended.',
      self_signed: 'Whether it signed itself.',
      flaws: 'Rules of the findings that its records hold.',
    },
    ownRecords: true,
    records: ['service', 'certificate', 'finding', 'address', 'domain'],
  },
  testssl: {
    reads: 'testssl.sh, its JSON (--jsonfile, --jsonfile-pretty)',
    rowFields: {
      rule: 'Id of the check.',
      severity: 'ok, info, low, medium, high or critical; warn and fatal where the check itself failed.',
      finding: 'What the check found.',
      ...openPort,
      ...portNames,
      target: 'Address and port, or name and port.',
      cve: 'CVEs of the check.',
      cwe: 'CWEs of the check.',
    },
    ownRecords: true,
    records: ['finding', 'service', 'certificate', 'address', 'domain'],
  },
} as const;

export const nameReaders = {
  subfinder: {
    reads: 'subfinder, JSON Lines (-oJ) or lines',
    rowFields: {
      host: 'The subdomain.',
      domain: 'The domain that was asked for, or null.',
      ip: place.ip,
      sources: 'Where it was found.',
    },
    ownRecords: true,
    records: ['domain', 'address', 'dns'],
  },
  dnsx: {
    reads: 'dnsx, JSON Lines (-json) or lines',
    rowFields: {
      host: 'The name or the address that was asked for.',
      ip: 'First address, or null.',
      ips: 'All addresses of the host.',
      rcode: 'NOERROR, NXDOMAIN, …, or null.',
      ttl: 'Seconds that the answer holds, or null.',
      a: 'Answers of A.',
      aaaa: 'Answers of AAAA.',
      cname: 'Answers of CNAME.',
      mx: 'Answers of MX.',
      ns: 'Answers of NS.',
      txt: 'Answers of TXT.',
      ptr: 'Answers of PTR.',
      srv: 'Answers of SRV.',
      caa: 'Answers of CAA.',
    },
    ownRecords: true,
    records: ['domain', 'address', 'dns'],
  },
} as const;
